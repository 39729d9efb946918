import AccessTokens

extension SharedSession {
    /// The session's knowledge of the store, and the sign-ins and sign-outs that haven't reached it.
    struct State: Sendable {
        /// How many unfinished operations a store may have, since each keeps a task; after that it gets no more until the first are
        /// forgotten.
        private static let mostUnfinished = 16

        /// When an unfinished operation is forgotten, since its callback must be lost: two minutes, as for a load by default.
        private static let patience = RefreshPolicy().loadTimeout * RefreshPolicy.timeoutsUntilForgotten

        var knowledge = SharedFlight.Knowledge()
        /// The sign-in or sign-out that hasn't reached the store yet; no flight may overtake it.
        var fence: SharedFence?
        /// Counts sign-ins, sign-outs and overtaken sessions; what a flight learnt before one of them is outdated.
        var fences = 0
        /// The grants that fences displaced, until they are handed over.
        var displaced: [DiscardedGrant] = []
        /// The last token that a sign-in or a sign-out has found in the record, and hands over.
        var found: AccessToken?
        /// The session that another service has ended, as a sign-in here found out, until this service is notified.
        var end: SessionEnd?
        /// The last sign-out in the record that came after this service's sign-in or sign-out and before its retry, until the
        /// service is notified.
        var overtaken: UInt64?
        /// The marks that are being taken back.
        var strays: [StrayMark] = []
        /// When the store's unfinished operations began, including those that nothing waits for any longer.
        var unfinished: [Int: Duration] = [:]
        var operations = 0
        /// Whether the user has asked to try again.
        var isRetry = false
        var respect = Respect.unmarked

        /// How long others respect this service's mark, as far as is known.
        enum Respect: Sendable, Equatable {
            case unmarked
            case until(Duration)
            case forever
        }

        /// When the service can be released without a loss; `nil`: not yet.
        var restsFrom: Duration? {
            switch (fence, respect) {
            case (nil, .unmarked): .zero
            case (nil, .until(let end)): end
            case (_?, _), (nil, .forever): nil
            }
        }

        /// Returns the number of an operation of the store that begins now; `nil` if too many are unfinished.
        mutating func beginOperation(at now: Duration) -> Int? {
            if unfinished.count >= Self.mostUnfinished { unfinished = unfinished.filter { now < $0.value + Self.patience } }
            guard unfinished.count < Self.mostUnfinished else { return nil }
            operations += 1
            unfinished[operations] = now
            return operations
        }

        /// Notes that the last fence, or an earlier one, may not have been written over this record.
        mutating func noteAttempt(of last: SharedFence, over record: GrantRecord?) {
            fence?.heed(last)
            // The token is handed out anyway, so a later sign-out ends a session.
            guard last.token != nil else { return }
            knowledge.signedOut = max(knowledge.signedOut ?? 0, record?.signedOut ?? 0)
            knowledge.meet(record)
        }

        /// Notes that the fence is in the record, or that the record's has overtaken it: then returns the record's last sign-out.
        mutating func settle(_ fence: SharedFence, by record: GrantRecord?) -> UInt64? {
            if let record, record.fence == fence.id {
                knowledge.take(record, isRenewed: !fence.stands(in: record))
                return nil
            }
            // The record's session belongs to another service.
            (knowledge.session, knowledge.unmarked) = (nil, nil)
            // The flight that reads a later sign-out than this one ends the session.
            return fence.token == nil && knowledge.hasNews(record) ? nil : record?.signedOut ?? 0
        }

        /// Returns, once, which session is over; the service ends it now.
        mutating func takeEnd() -> SessionEnd? {
            defer { (end, overtaken) = (nil, nil) }
            guard let overtaken else { return end }
            // The flights' knowledge was about that session.
            fences += 1
            knowledge.overtaken(signedOut: overtaken)
            return .overtaken
        }
    }
}

extension SharedFlight {
    /// The knowledge that a session keeps from one flight to the next.
    struct Knowledge: Sendable, Hashable {
        /// A request of this service that has no answer, although its load has ended.
        struct Unanswered: Sendable, Hashable {
            /// The generation of the token that the request presents.
            var generation: UInt64
            var began: Duration
            /// When the request can no longer be under way.
            var end: Duration
        }

        /// The generation of the last token or tombstone that the service took over.
        var generation: UInt64?
        /// The latest generation that the service has seen; `nil`: it has yet to read.
        var seen: UInt64?
        /// The last sign-out that the service knows of, as ``GrantRecord/signedOut``; `nil`: it has yet to read.
        var signedOut: UInt64?
        /// The sign-in of the session that the service knows, as ``GrantRecord/fence``; `nil`: it knows of none.
        var session: String?
        var unanswered: Unanswered?
        /// The revision that was read last, and when it was written or, if the store can't tell, first seen, from which a doubt
        /// counts.
        var revision: SharedRecord.Revision?
        var since = Duration.zero
        /// The record at that revision, if it has no mark; the next flight may mark it without reading again.
        var unmarked: GrantRecord?
        /// The generation that counts as refused for all, though this service itself wasn't refused.
        var refusedElsewhere: UInt64?
        /// The generation that was refused to this service, or for all; no later failure cancels a refusal.
        var refused: UInt64?
        /// The sign-in, as ``GrantRecord/fence``, under which the server has given this service a token, which shows that its
        /// client is accepted.
        var served: String?
        /// How many records this service has written.
        var writes = 0
    }
}

extension SharedFlight.Knowledge {
    /// Adds what a flight has learnt; flights may end in another order than they began.
    ///
    /// - Parameter isFenced: Whether a sign-in or a sign-out has come since the flight began; then its record is outdated.
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
        // Of two reads the later one counts.
        if revision == other.revision || since <= other.since {
            (revision, since, unmarked) = (other.revision, other.since, isFenced ? nil : other.unmarked)
            if !isFenced { session = other.session }
        }
    }

    /// Whether a record shows a sign-out that the service doesn't know of.
    func hasNews(_ record: GrantRecord?) -> Bool {
        if let record, let signedOut { signedOut < record.signedOut } else { false }
    }

    /// Whether a record is older than one that the service has seen.
    ///
    /// By its count, or by a missing sign-out if it was restored from a backup and renewed since.
    func isNewer(than record: GrantRecord) -> Bool { record.generation < seen ?? 0 || record.signedOut < signedOut ?? 0 }

    /// Notes the record's session as known.
    mutating func meet(_ record: GrantRecord?) { session = record?.token == nil ? nil : record?.fence }

    /// Whether a record shows a sign-out that the service doesn't know of; from now on it knows of it, or else of the session.
    ///
    /// A sign-in may have followed. The flights that begin after the session has ended adopt it.
    mutating func learnSession(of record: GrantRecord) -> Bool {
        let isNews = hasNews(record)
        signedOut = max(signedOut ?? 0, record.signedOut)
        if isNews {
            (generation, session) = (record.signedOut, nil)
        } else if !isNewer(than: record) {
            meet(record)
        }
        return isNews
    }

    /// Notes that another service has ended the session: its token is adopted as if the service had read nothing yet.
    mutating func overtaken(signedOut last: UInt64) {
        (generation, signedOut, unmarked) = (nil, max(signedOut ?? 0, last), nil)
    }

    /// Notes that a sign-in or a sign-out of the service is in the store.
    ///
    /// - Parameter isRenewed: Whether another service has saved a token since, which hasn't been adopted yet.
    mutating func take(_ record: GrantRecord, isRenewed: Bool) {
        if !isRenewed { generation = record.generation }
        unmarked = nil
        signedOut = record.signedOut
        meet(record)
        // The program got the token of a sign-in from the server.
        served = record.fence
        seen = max(seen ?? 0, record.generation)
    }
}
