import AccessTokensTesting
package import Interleavings

/// One situation of the contrast, and the promises that a design must keep in it, in any order.
package struct Trial: Sendable {
    /// The trial's event, as a clause.
    package let name: String
    private let trouble: Network.Trouble
    private let script: @Sendable (Run) async throws -> Void
    private let requirements: @Sendable (Run) -> Violation?

    private init(
        _ name: String, trouble: Network.Trouble = .none, script: @escaping @Sendable (Run) async throws -> Void,
        requirements: @escaping @Sendable (Run) -> Violation?
    ) {
        self.name = name
        self.trouble = trouble
        self.script = script
        self.requirements = requirements
    }

    /// Runs the trial with a design under one schedule after another.
    ///
    /// - Parameters:
    ///   - design: The design to try.
    ///   - callers: How many callers ask.
    ///   - strategy: Which schedules.
    ///   - driving: If everything is driven, the design takes no parameters from the simulation, and has no points inside
    ///     synchronous code.
    /// - Returns: How many schedules there were, how many failed, and the first failure.
    package func explore(
        _ design: Design, callers: Int, _ strategy: Strategy = .exhaustive(), driving: Driving = .preferred
    ) async throws -> ExplorationSummary {
        let granularity = driving.isEverything ? .jobs : design.granularity
        return try await Interleavings.explore(
            strategy, granularity: granularity, driving: driving, countsFailures: true
        ) { simulation in
            let run = Run(design, in: EveryOrder(simulation), trouble: trouble, callers: callers)
            try await script(run)
            let violation = requirements(run)
            try simulation.require(violation == nil, violation?.text ?? "", line: violation?.line ?? #line)
        }
    }

    /// Runs the trial with a design once, in the usual order, and counts.
    ///
    /// - Parameters:
    ///   - design: The design to try.
    ///   - callers: How many callers ask.
    ///   - latecomers: How many callers ask at the end, if the trial has such callers.
    ///   - count: What to count of the run.
    package func count<Figures>(
        _ design: Design, callers: Int, latecomers: Int = 1, _ count: (Run) -> Figures
    ) async throws -> Figures {
        let order = UsualOrder()
        let run = Run(design, in: order, trouble: trouble, callers: callers, latecomers: latecomers)
        try await script(run)
        defer { order.end() }
        return count(run)
    }
}

extension Trial {
    /// All of them; the first is the articles' question.
    package static let all = [rush, signOut, release, silence, echo]

    /// One load, one answer for each, in order, with a token that the server accepts.
    package static let rush = Trial("all callers ask at once") { run in
        run.askAll()
        try await run.surroundings.settle()
    } requirements: {
        $0.secondLoad ?? $0.wrongAnswer ?? $0.refusedToken
    }

    /// Callers that ask in the line after the sign-out, or later, get nothing from before it.
    package static let signOut = Trial("a user signs out meanwhile") { run in
        run.askAll()
        run.signOut()
        try await run.surroundings.settle()
        run.askLate()
        try await run.surroundings.settle()
    } requirements: {
        $0.wrongAnswer ?? $0.oldToken
    }

    /// The owner lets the service go; all callers are answered.
    package static let release = Trial("the service is released meanwhile") { run in
        run.askAll()
        run.release()
        try await run.surroundings.settle()
    } requirements: {
        $0.wrongAnswer
    }

    /// The first load gets no answer; its callers, and those a minute later, get a token or an error.
    package static let silence = Trial("the first load gets no answer", trouble: .firstAnswerIsLate) { run in
        run.askAll()
        try await run.surroundings.pass(.seconds(60))
        run.askLate()
        try await run.surroundings.settleForNow()
    } requirements: {
        $0.wrongAnswer
    }

    /// The loader calls its handler twice.
    package static let echo = Trial("the loader answers twice", trouble: .answersTwice) { run in
        run.askAll()
        try await run.surroundings.settle()
    } requirements: {
        $0.wrongAnswer
    }

    /// Returns how many callers have to wait for the network while one token follows another, in the usual order.
    ///
    /// All callers ask once a minute for eleven minutes; the server's tokens are valid for ten.
    package static func waitingAtExpiry(_ design: Design, callers: Int) -> Int {
        let order = UsualOrder()
        let run = Run(design, in: order, tokenLifetime: .seconds(600), callers: callers)
        run.ask("first caller")
        order.pass(.seconds(30))
        var waiting = 0
        for _ in 1...11 {
            run.askAll()
            waiting += run.unanswered
            order.pass(.seconds(60))
        }
        return waiting
    }

    /// Returns how many callers get a token, in the usual order, while each blocks a thread until it has one.
    ///
    /// The pool has as many threads as there are callers. A design without completion handlers has to be called in a task.
    package static func answeredIfBlocking(_ design: Design, callers: Int) -> Int {
        let order = BlockedPool(), answered = Log<Void>()
        let service = design.make(order, Network(order, tokenLifetime: .seconds(3600), trouble: .none))
        let handler: Design.Handler = { answer in
            if case .success = answer { answered.append(()) }
        }
        for number in 0..<callers {
            if let call = service.call {
                call(handler)
            } else {
                order.spawn("caller \(number + 1)") { await service.ask(handler) }
            }
        }
        // Longer than a load may take.
        withExtendedLifetime(service) { order.pass(.seconds(60)) }
        defer { order.end() }
        return answered.entries.count
    }
}
