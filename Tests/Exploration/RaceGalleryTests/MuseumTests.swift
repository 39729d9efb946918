import AccessTokens
import AccessTokensTesting
import Interleavings
import RaceGallery
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite struct `The museum` {
    /// The promise that each broken service breaks, by the exhibit's number; for a deadlock, what waits for what.
    static let promises = [
        1: "one load, however many callers",
        2: "one refresh ahead, however many callers notice that it is due",
        3: "a caller that stays is not cancelled",
        4: "callers that stay, or come later, are not cancelled",
        5: "after a failure the server is asked again",
        6: "a valid token is handed out, whatever happens to its refresh",
        7: "after a sign-out no caller gets a token of the previous session",
        8: "after Ben has signed in no caller gets a token of Anna's",
        9: "after a sign-out there is one load, however many callers",
        10: "one refused token costs one load, however late its refusals come",
        11: "no refresh token is used twice: the server ends the session",
        12: "a server that returns the refused token is not asked again and again",
        13: "a forced refresh returns a token with the new scope",
        14: "no caller waits for more than a minute, though the server is silent",
        15: "no caller waits for more than a minute, though the server is silent",
        16: "a caller is answered once",
        17: "a caller that has the token finds it when it asks again: one load, not 2",
        18: "a handler is called, also if its service was released",
        19: "the session survives a caller that leaves: no refresh token is sent twice",
        20: "Deadlock: nothing can run and no timer is pending, but these have not ended: 'caller 1', 'caller 2'.",
        21: "serves six requests in a few seconds: one load",
        22: "a minute after an outage, however long, there is a token",
        23: "an expired token stays expired, whatever the wall clock says",
        24: "a refused token is never handed out again",
        25: "the token handed out is the one whose expiry was read, not an expired one",
        26: "a token that was requested for write has that scope",
        27: "waits for the lock 'model', which 'screen 2' holds. 'screen 2' waits for the lock 'service', which '",
        28: "'thread 1' waits for the lock 'loaded'",
        29: "a request that fails on its way does not end the session",
        30: "keys with one refresh token take turns, so the session survives",
        31: "services that are not in use are released, all but 2",
        32: "only one of two processes presents the refresh token, so the session survives",
        33: "a failed load is followed by one more, however many callers",
        34: "a refused refresh token takes nothing but itself out of the store",
        35: "while a request may be under way no other process presents its refresh token",
        36: "a refresh token is sent again only if the server has not looked at it",
        37: "a request that gains a scope takes none away",
        38: "a sign-out has taken effect when it returns",
    ]

    /// The exhibits whose broken service stops altogether, instead of breaking a promise.
    static let deadlocks: Set = [20, 27, 28]

    /// The exhibits whose promise is about time: if time can move at any step, the load's limit may pass at any step.
    static let timed: Set = [5, 14, 15, 17, 19, 20, 21, 22, 24, 25, 29, 30, 31, 32, 34, 35]

    #if DEBUG
    static let strategies = [
        Strategy.mixed(schedules: .everyday(12, thorough: 400)),
        .exhaustive(preemptions: 2, limit: .everyday(8, thorough: 300)),
    ]
    #else
    static let strategies = [Strategy.mixed(schedules: 1_000), .exhaustive(preemptions: 2, limit: 5_000)]
    #endif

    /// The problem without the places where tasks wait, which change with the sources.
    static func text(of problem: ExplorationProblem) -> String {
        problem.description.replacing(#/ in \S+ at [^,\s]+:\d+/#, with: "")
    }

    @Test func `the museum has the numbers 1 to 38, each with a lesson, a source and a promise`() {
        #expect(Exhibit.all.map(\.number) == Array(1...38))
        #expect(Exhibit.all.allSatisfy { !$0.lesson.isEmpty && !$0.source.isEmpty && Self.promises[$0.number] != nil })
    }

    @Test(arguments: Exhibit.all)
    func `an exhibit's broken service breaks its promise within the strategy, and its schedule replays`(
        _ exhibit: Exhibit
    ) async throws {
        let promise = try #require(Self.promises[exhibit.number])
        func failure(under strategy: Strategy) async throws -> ScheduleFailure {
            try await #require(throws: ScheduleFailure.self) {
                try await explore(strategy, time: exhibit.time, granularity: exhibit.granularity, exhibit.broken)
            }
        }
        let first = try await failure(under: exhibit.strategy)
        let again = try await failure(under: .replay(first.schedule))
        for failure in [first, again] {
            let problem = try #require(failure.underlying as? ExplorationProblem)
            #expect(problem.code == (Self.deadlocks.contains(exhibit.number) ? .deadlock : .requirement))
            #expect(Self.text(of: problem).contains(promise))
        }
        // A plain Boolean: otherwise the testing library would describe every step of both operands.
        let isSame = first.trace == again.trace
        #expect(isSame)
    }

    #if os(Linux) && DEBUG
    /// The function and the line to be fixed.
    static let awaits: [Int: String] = [
        1: "ReentrantTokenService.retrieveToken() at Stages/ReentrantTokenService.swift:33",
        7: "UnfencedSessionService.load() at Museum/Exhibit07+UndoneSignOut.swift:23",
        17: "EarlyWakingService.finish(_:) at Museum/Exhibit17+EarlyWakeUp.swift:48",
        24: "StaleRefreshService.load() at Museum/Exhibit24+StaleRefresh.swift:31",
    ]

    @Test(arguments: [1, 5, 7, 17, 24])
    func `a report names the await at which a task came in between, and none where time or a failure is to blame`(
        _ number: Int
    ) async throws {
        let exhibit = try #require(Exhibit.all.first { $0.number == number })
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(exhibit.strategy, time: exhibit.time, granularity: exhibit.granularity, exhibit.broken)
        }
        let report = "\(try #require(failure))"
        let named = Self.awaits[number].map { report.contains("' was suspended in \($0) (steps ") }
        #expect(named ?? !report.contains("was suspended in"), "\(report)")
    }
    #endif

    @Test(arguments: Exhibit.all)
    func `TokenService keeps an exhibit's promise where the broken service breaks it`(_ exhibit: Exhibit) async throws {
        for strategy in Self.strategies {
            try await explore(strategy, time: exhibit.time, granularity: exhibit.granularity, exhibit.mended)
        }
    }

    /// As on a machine so loaded that any timer may fire before work that has been ready for long.
    @Test(arguments: Exhibit.all.filter { !timed.contains($0.number) })
    func `TokenService keeps an exhibit's promise also when time moves at any step`(_ exhibit: Exhibit) async throws {
        for strategy in Self.strategies {
            for time in [TimeModel.anytime, .whenIdle] where time != exhibit.time {
                try await explore(strategy, time: time, granularity: exhibit.granularity, exhibit.mended)
            }
        }
    }

    // Museum 26: the load's key ignores scope or resource: callers get the wrong token (Duende foss#360).
    @Test func `museum 26: two services for two scopes share no load, though both run at once`() async throws {
        let stage = Stage(), clock = ManualClock()
        let callers = ["read", "write"].map { scope in
            let loader = ScriptedLoader()
            let service = TokenService(environment: .driven(by: stage, clock: clock), loader: loader)
            return (scope, loader, stage.start { try await service.retrieveToken() })
        }
        for (scope, loader, _) in callers.reversed() {
            try await loader.nextCall().succeed(with: AccessToken(scope, scope: scope))
            stage.run()
        }
        #expect(callers.allSatisfy { scope, loader, caller in caller.value?.scope == scope && loader.loadCount == 1 })
    }
}
