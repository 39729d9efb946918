import AccessTokens

extension SharedSession {
    /// The session's knowledge of the store, and the sign-ins and sign-outs that haven't reached it.
    struct State: Sendable {
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
