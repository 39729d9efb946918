import AccessTokens

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// How a service shares its grant with others; all services that share one record should use the same options.
public struct TokenSharing: Sendable {
    /// How long a silent process's mark is respected.
    ///
    /// A process marks the record before it presents the refresh token. If it neither saves nor fails, it may have died, or it
    /// may still be waiting for its answer. Presenting the token a second time ends the session at a server without a grace
    /// period, if the first request was answered; not presenting it leaves the fleet without a token.
    public struct Doubt: Sendable, Hashable {
        enum Kind: Hashable {
            case standard, never
            case after(Duration)
        }

        let kind: Kind

        /// Twice the longest time that the mark allows its exchange.
        public static let standard = Doubt(kind: .standard)

        /// A mark is respected until its holder removes it, or is known to have died, or a user signs in.
        public static let never = Doubt(kind: .never)

        /// The given time, but at least the longest time that the mark allows its exchange.
        public static func after(_ duration: Duration) -> Doubt { Doubt(kind: .after(duration)) }

        /// How long to wait for a mark's holder, from its writing or from when it was first seen; `nil`: without end.
        func patience(with mark: GrantRecord.Mark) -> Duration? {
            switch kind {
            case .standard: mark.limit * 2
            case .never: nil
            case .after(let duration): max(duration, mark.limit)
            }
        }
    }

    /// How long a load may still be under way after `RefreshPolicy.loadTimeout`; 30 s.
    ///
    /// That limit doesn't end a load that must not be repeated. Give the transport a limit of its own, no longer than the sum of
    /// both.
    public var transportLimit: Duration {
        didSet { transportLimit = max(transportLimit, .zero) }
    }

    /// How long a silent process's mark is respected; ``Doubt/standard``.
    public var doubt: Doubt

    /// How long the server accepts a refresh token again after it has replaced it, its *grace period*; `nil`: not at all.
    ///
    /// Only state what the server's documentation or configuration says, and the shorter time if it may vary. With it, a service
    /// presents the token again at once if the mark's holder is known to have died, or if the service has lost the answer itself.
    /// That helps only within the period, so the transport's own limit must be shorter. Without it, a service waits first, until
    /// no earlier request can still be under way.
    public var serverGrace: Duration? {
        didSet { serverGrace = serverGrace.map { max($0, .zero) } }
    }

    /// How often callers check whether another service has signed out or brought a later token; `nil`: only when they need a
    /// token.
    ///
    /// Without it a service reads the record when it has no good token, and in the soft window before its token expires. So it
    /// may hand out a token until then although another service has signed out. With it, a caller that gets a good token, an
    /// interval after the record was last read, also starts one read in the background. The caller doesn't wait for it. A
    /// sign-out found there ends the session here: its event is `TokenEvent.Name.reset`. A later token is adopted
    /// (`TokenEvent.Name.restored`). A read that fails changes nothing, and the next one comes an interval later.
    ///
    /// Without callers a service reads nothing, since it has no timer. Intervals below one second become one second.
    public var checkEvery: Duration? {
        didSet { checkEvery = Self.bounded(checkEvery) }
    }

    /// Encrypts a record before it is written; `nil`: the store gets the plain record.
    public var seal: (@Sendable (Data) throws -> Data)?

    /// Decrypts what ``seal`` encrypted; an error is treated as one of the store's, and the record is left as it is.
    public var open: (@Sendable (Data) throws -> Data)?

    /// Creates the options.
    ///
    /// - Parameters:
    ///   - transportLimit: How long a load may still be under way after its limit.
    ///   - doubt: How long a silent process's mark is respected.
    ///   - serverGrace: How long the server accepts a refresh token again after it has replaced it.
    ///   - checkEvery: How often callers that get a good token start a read of the record.
    ///   - seal: Encrypts a record.
    ///   - open: Decrypts it.
    public init(
        transportLimit: Duration = .seconds(30),
        doubt: Doubt = .standard,
        serverGrace: Duration? = nil,
        checkEvery: Duration? = nil,
        seal: (@Sendable (Data) throws -> Data)? = nil,
        open: (@Sendable (Data) throws -> Data)? = nil
    ) {
        self.transportLimit = max(transportLimit, .zero)
        self.doubt = doubt
        self.serverGrace = serverGrace.map { max($0, .zero) }
        self.checkEvery = Self.bounded(checkEvery)
        self.seal = seal
        self.open = open
    }

    /// Clamps the interval to the pause between store checks, and so that no sum overflows.
    private static func bounded(_ interval: Duration?) -> Duration? {
        interval.map { min(max($0, RefreshPolicy.lookPause), RefreshPolicy.longestLifetime) }
    }
}
