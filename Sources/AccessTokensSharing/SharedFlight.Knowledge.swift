import AccessTokens

extension SharedFlight {
    /// What survives a flight.
    struct Knowledge: Sendable, Hashable {
        /// A request of this service that has no answer, though its load has ended.
        struct Unanswered: Sendable, Hashable {
            /// The generation of the token that it presents.
            var generation: UInt64
            var began: Duration
            /// When it is certainly no longer under way.
            var end: Duration
        }

        /// The generation of the last token or tombstone that the service took over.
        var generation: UInt64?
        /// The latest generation that the service has seen; `nil`: it has yet to read.
        var seen: UInt64?
        /// The last sign-out that the service knows of, as ``GrantRecord/signedOut``; `nil`: it has yet to read.
        var signedOut: UInt64?
        var unanswered: Unanswered?
        /// The revision that was read last, and when it was written or, if the store can't tell, seen first: a doubt counts from there.
        var revision: SharedRecord.Revision?
        var since = Duration.zero
        /// The record at that revision, if it has no mark: what the next flight may mark without another look.
        var unmarked: GrantRecord?
        /// The generation that counts as refused for all; the service hasn't been refused itself.
        var refusedElsewhere: UInt64?
        /// The generation that was refused to this service, or for all: a later failure outweighs no refusal.
        var refused: UInt64?
        /// The sign-in under which the server has given this service a token, as ``GrantRecord/fence``: its client is the right one.
        var served: String?
        /// How many records this service has written.
        var writes = 0
    }
}

extension SharedFlight.Knowledge {
    /// Adds what a flight has learnt, which may end later than one that began after it.
    ///
    /// - Parameter isFenced: Whether a sign-in or a sign-out has come since it began: then its record is of the past.
    mutating func learn(_ other: Self, isFenced: Bool) {
        writes = max(writes, other.writes)
        if !isFenced {
            generation = [generation, other.generation].compactMap { $0 }.max()
            seen = [seen, other.seen].compactMap { $0 }.max()
            refusedElsewhere = other.refusedElsewhere
            refused = other.refused ?? refused
            served = other.served ?? served
            signedOut = [signedOut, other.signedOut].compactMap { $0 }.max()
        }
        unanswered = [unanswered, other.unanswered].compactMap { $0 }.max { $0.end < $1.end }
        // Of two looks the later one counts.
        if revision == other.revision || since <= other.since {
            (revision, since, unmarked) = (other.revision, other.since, isFenced ? nil : other.unmarked)
        }
    }

    /// Whether a record shows a sign-out that the service doesn't know of; from then on it knows.
    ///
    /// A sign-in may have followed. It is adopted by the flights that begin after the session has ended.
    mutating func learnSignOut(in record: GrantRecord) -> Bool {
        let isNews = signedOut.map { $0 < record.signedOut } ?? false
        signedOut = max(signedOut ?? 0, record.signedOut)
        if isNews { generation = record.signedOut }
        return isNews
    }

    /// Another service has ended the session, and its token is adopted as if the service had read nothing yet.
    mutating func overtaken(signedOut last: UInt64) {
        (generation, signedOut, unmarked) = (nil, max(signedOut ?? 0, last), nil)
    }

    /// A sign-in or a sign-out of the service stands in the store.
    ///
    /// - Parameter isRenewed: Whether another service has brought a token since then, which has yet to be adopted.
    mutating func take(_ record: GrantRecord, isRenewed: Bool) {
        if !isRenewed { generation = record.generation }
        unmarked = nil
        signedOut = record.signedOut
        // The program has the token of a sign-in from the server.
        served = record.fence
        seen = max(seen ?? 0, record.generation)
    }
}
