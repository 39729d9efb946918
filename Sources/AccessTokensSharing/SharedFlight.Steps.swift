import AccessTokens

/// The input and the output of a flight.
extension SharedFlight {
    /// The data with which a flight starts.
    struct Setting: Sendable, Hashable {
        /// Names this service in marks.
        var owner: String
        /// Names the flight among those of the service, so that each write has a name of its own.
        var flight = 0
        /// Names the service's process, for stores that know which processes are running.
        var holder: String?
        var policy = RefreshPolicy()
        /// How long after `RefreshPolicy.loadTimeout` the transport may still be working.
        var transportLimit = Duration.seconds(30)
        /// How long a silent holder's mark is respected.
        var doubt = TokenSharing.Doubt.standard
        /// How long the server accepts a refresh token again after it has replaced it; `nil`: not at all, or unknown.
        var serverGrace: Duration?
        var isRepeatable = false
        /// When the callers' time is over; `nil`: never.
        var deadline: Duration?
        /// Whether a token is still handed out meanwhile, so that no caller waits.
        var isRefresh = false
        /// Whether the user asked to try again, so that the fleet's failures don't count.
        var isRetry = false
        /// Whether the flight only reads what other services have written, and writes and loads nothing, since the service pauses
        /// or its token is good.
        var isLook = false
        /// The token that a repeatable load presents if the store can't be read.
        var memory: AccessToken?
        /// Marks of this service that are being taken back.
        var strays: [StrayMark] = []
        /// The key that the loader's tokens are bound to.
        var keyThumbprint: String?
        /// Tokens that resource servers refused.
        var refused: [String] = []
        /// Lengthens the fleet's pauses, 0 ..< 1.
        var jitter = 0.0
    }

    /// The time on the service's own clock and, if it tells one, on the wall clock, in seconds since 2001.
    struct Moment: Sendable, Hashable {
        var now: Duration
        var wall: Double?
        /// Whether nothing waits for the flight any longer, because of a fence, its limit or a drain, so that it spends nothing.
        var isAbandoned = false
    }

    /// A record as it was read.
    struct Sighting: Sendable, Hashable {
        var record: GrantRecord
        var revision: SharedRecord.Revision
        /// Whether the process of its mark is running; `nil`: unknown.
        var isHolderRunning: Bool?
        /// How long the record has been like this, at least; `nil` if the store can't tell.
        var age: Duration?
    }

    enum Event: Sendable, Hashable {
        /// The record, or none; also the outcome of a wait that has read it.
        case read(Sighting?)
        /// A read failed, or a swap whose outcome is unknown.
        case storeFailed(Failure)
        case swapped(SharedRecord.Revision)
        case conflict(Sighting?)
        /// A wait is over: the record may have changed, or the time has passed.
        case waited
        case loaded(AccessToken)
        case failed(Failure)
    }

    enum Step: Sendable, Hashable {
        case read
        case swap(GrantRecord, ifAt: SharedRecord.Revision?)
        /// Wait until the record changes, at most so long; `nil`: without a limit.
        case wait(from: SharedRecord.Revision?, atMost: Duration?)
        /// Wait until the store may have recovered.
        case pause(Duration)
        /// Present a refresh token: the one in the record that is marked.
        case load(previous: AccessToken?)
        case end(Ending)
    }

    struct Ending: Sendable, Hashable {
        enum Outcome: Sendable, Hashable {
            /// A token, and how long ago its load began.
            case token(AccessToken, age: Duration, isAdopted: Bool)
            case failed(Failure)
            /// Another service is loading, and no caller waits here; or a check found nothing new.
            case gaveUp
            /// A check found a grant newer than any that the service has tried.
            case newGrant
            /// Another service has signed out; a session is over if this service knew of one.
            case signedOut(isOfSession: Bool)
        }

        var outcome: Outcome
        /// A token that this flight brought and that the record can't hold; to be revoked.
        var discarded: AccessToken?
        /// A mark that this flight has made, or may still make, although its work is over.
        var stray: StrayMark?
    }
}
