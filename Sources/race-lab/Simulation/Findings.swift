import AccessTokens
import AccessTokensTesting
import TestStage

/// A column of the table: what one design did, all of it measured; its properties are named as the table's rows.
struct Findings: Encodable, Equatable {
    let design: String
    let callers: Int
    private(set) var loads = 0
    private(set) var tokensRevokedInUse = 0
    private(set) var answersLost = 0
    private(set) var answersTwice = 0
    private(set) var answersOutOfOrder = 0
    private(set) var signOutHolds = false
    private(set) var waitingAtExpiry = 0
    private(set) var schedules = 0
    private(set) var failing = 0
    let isThreadSafe: Bool
    let reason: String

    /// Runs a design through all scenarios.
    ///
    /// - Parameter report: Told what happens next, for a person who waits.
    init(of design: Design, callers: Int, report: (_ scenario: String) -> Void = { _ in }) {
        self.design = design.name
        self.callers = callers
        isThreadSafe = design.isThreadSafe
        reason = design.reason
        report("everybody asks at once")
        rush(design)
        report("the service is released during a load")
        release(design)
        report("the server never answers")
        silence(design)
        report("the loader answers twice")
        echo(design)
        report("somebody signs out during a load")
        signOut(design)
        report("the token expires")
        expire(design)
    }

    /// Adds what the explorer found.
    mutating func add(_ contrast: Contrast) {
        schedules = contrast.schedules
        failing = contrast.failures
    }

    /// All callers ask while nothing is cached, of a server that keeps one token valid.
    private mutating func rush(_ design: Design) {
        var scenario = Scenario(design)
        scenario.ask(callers)
        scenario.world.pass(Network.slowest)
        loads = scenario.world.server.loadsStarted
        tokensRevokedInUse = scenario.tokens.count { !scenario.world.server.accepts($0) }
        answersOutOfOrder = scenario.overtaken
    }

    /// All callers ask, then the owner of the service lets it go; the server answers as usual.
    private mutating func release(_ design: Design) {
        var scenario = Scenario(design)
        scenario.ask(callers)
        scenario.release()
        scenario.world.pass(Network.slowest)
        answersLost += scenario.unanswered
    }

    /// The server never answers the first load; half the callers ask then, the others a minute later.
    ///
    /// That is after the time limit of 30 s, and the server is well again. An error is an answer, too.
    private mutating func silence(_ design: Design) {
        var scenario = Scenario(design)
        scenario.world.server.loseNextAnswers()
        scenario.ask(callers - callers / 2)
        scenario.world.pass(.seconds(60), step: .seconds(1))
        scenario.ask(callers / 2)
        scenario.world.pass(.seconds(60), step: .seconds(1))
        answersLost += scenario.unanswered
    }

    /// The loader calls its handler twice.
    private mutating func echo(_ design: Design) {
        var scenario = Scenario(design, answersTwice: true)
        scenario.ask(callers)
        scenario.world.pass(Network.slowest)
        answersTwice = scenario.answersPerCaller.count { $0 > 1 }
    }

    /// One caller asks, somebody signs out during the load, the load ends, and the next caller asks.
    private mutating func signOut(_ design: Design) {
        var scenario = Scenario(design)
        scenario.ask(1)
        scenario.signOut()
        scenario.world.pass(Network.slowest)
        scenario.ask(1)
        scenario.world.pass(Network.slowest)
        // The server numbers its tokens, so that this one is known: it was on its way when the sign-out came.
        signOutHolds = scenario.lastToken.map { $0.value != "access-1" } ?? false
    }

    /// All callers ask once a minute for eleven minutes, of a server whose tokens live for ten.
    private mutating func expire(_ design: Design) {
        var scenario = Scenario(design)
        scenario.ask(1)
        scenario.world.pass(.seconds(30), step: .seconds(1))
        for _ in 1...11 {
            scenario.ask(callers)
            waitingAtExpiry += scenario.unanswered
            scenario.world.pass(.seconds(60), step: .seconds(1))
        }
    }
}
