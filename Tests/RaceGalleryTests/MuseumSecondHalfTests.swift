import AccessTokens
import AccessTokensTesting
import Interleavings
import RaceGallery
import Testing

@Suite("The museum, 16 to 29")
struct MuseumSecondHalfTests {
    /// What each broken service is caught with: the promise that it breaks.
    static let promises = [
        16: "a caller is answered once",
        17: "who was given the token finds it on asking again: one load, not 2",
        18: "a handler is called, also if its service was released",
        19: "the session survives a caller that leaves: no refresh token is sent twice",
        20: "Deadlock: nothing can run and no timer is pending, but these have not ended: 'caller 1', 'caller 2'.",
        21: "serves six requests in a few seconds: one load",
        22: "a minute after an outage, however long, there is a token",
        23: "no clock on the wall makes an expired token valid",
        24: "a refused token is never handed out again",
        25: "the token handed out is the one whose expiry was looked at, not an expired one",
        26: "a token that is wanted to write may be used for that",
        27: "waits for the lock 'model'. 'screen 2' waits for the lock 'service'.",
        28: "'thread 1' waits for the lock 'loaded'. 'thread 2' waits for the lock 'loaded'.",
        29: "a request that failed on its way signs nobody out",
    ]

    /// Those whose promise says nothing of the load's time limit, which may pass when time moves at any step.
    static let timeless: Set = [16, 18, 23, 26, 27, 28]

    @Test("has every number, once")
    func numbers() {
        #expect(Exhibit.secondHalf.map(\.number) == Array(16...29))
        #expect(Self.promises.keys.sorted() == Array(16...29))
    }

    @Test("the broken service breaks its promise within its strategy, and does so again", arguments: Exhibit.secondHalf)
    func broken(exhibit: Exhibit) async throws {
        let scenario = try #require(exhibit.broken)
        let promise = try #require(Self.promises[exhibit.number])
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(exhibit.strategy, time: exhibit.time, granularity: exhibit.granularity, scenario)
        }
        #expect("\(try #require(failure).underlying)".contains(promise))
        let replay = Strategy.replay(try #require(failure).schedule)
        let again = await #expect(throws: ScheduleFailure.self) {
            try await explore(replay, time: exhibit.time, granularity: exhibit.granularity, scenario)
        }
        #expect("\(try #require(again).underlying)".contains(promise))
        #expect(again?.trace == failure?.trace)
    }

    #if DEBUG
    static let schedules = 300
    static let searched = 300
    #else
    static let schedules = 1_000
    static let searched = 5_000
    #endif

    @Test("TokenService keeps it in hundreds of schedules, and in hundreds with two preemptions", arguments: Exhibit.secondHalf)
    func mended(exhibit: Exhibit) async throws {
        for strategy in [Strategy.mixed(schedules: Self.schedules), .exhaustive(preemptions: 2, limit: Self.searched)] {
            try await explore(strategy, time: exhibit.time, granularity: exhibit.granularity, exhibit.mended)
        }
    }

    @Test("and also when time moves at any step", arguments: Exhibit.secondHalf.filter { timeless.contains($0.number) })
    func mendedAtAnyTime(exhibit: Exhibit) async throws {
        let other: TimeModel = exhibit.time == .whenIdle ? .anytime : .whenIdle
        try await explore(.mixed(schedules: 300), time: other, granularity: exhibit.granularity, exhibit.mended)
    }

    // Museum 26: the flight's key ignores scope or resource: the wrong token (Duende foss#360).
    @Test("26: two services for two scopes share no load, though both run at once")
    func twoScopes() async throws {
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
