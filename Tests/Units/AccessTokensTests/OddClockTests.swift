import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantee 9, whatever the clock does: timers are only hints")
struct OddClockTests {
    @Test(arguments: [1, 999])
    func `a clock that wakes too early still ends the wait, at its time`(milliseconds: Int) throws {
        let stage = Stage(), clock = ManualClock(), loader = ScriptedLoader()
        let odd = OddClock(clock, fault: .wakesEarly(by: .milliseconds(milliseconds)))
        let service = TokenService(environment: .driven(by: stage, clock: odd), loader: loader)
        let patient = stage.start { try await service.retrieveToken() }
        let hasty = stage.start { try await service.retrieveToken(within: .seconds(10)) }
        clock.advance(by: .seconds(10) - .milliseconds(milliseconds))
        // The clock keeps saying that it's too early, and each run is one check; an answered caller needs a few runs to return.
        for _ in 0..<20 { stage.runOnce() }
        #expect(!hasty.isDone)
        clock.advance(by: .milliseconds(milliseconds))
        stage.run()
        #expect(hasty.code == .deadlineExceeded)
        clock.advance(by: .seconds(20))
        stage.run()
        #expect(patient.code == .loadTimedOut)
    }

    @Test func `a clock that cannot sleep ends waits at once, rather than never`() throws {
        let stage = Stage(), loader = ScriptedLoader()
        let service = TokenService(
            environment: .driven(by: stage, clock: OddClock(ManualClock(), fault: .failsToSleep)), loader: loader)
        let caller = stage.start { try await service.retrieveToken() }
        #expect(caller.code == .loadTimedOut)
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(Int64.max) * 18, Duration(attoseconds: .max)])
    func `limits as long as a Duration allows work, on the real clock too`(limit: Duration) async throws {
        let policy = RefreshPolicy(loadTimeout: limit, maximumLeeway: limit, maximumRefreshWindow: limit)
        let service = TokenService(policy: policy) { _ in
            await Task.yield()
            return AccessToken("a", lifetime: limit)
        }
        #expect(try await service.retrieveToken(within: limit).value == "a")
        #expect(try await service.retrieveToken(within: .zero - limit).value == "a")
        await service.invalidate(AccessToken("a", lifetime: limit))
        await #expect(throws: TokenServiceError.self) { try await service.retrieveToken(within: .zero - limit) }
    }

    @Test func `with a clock that never wakes, the next call detects that a load has timed out`() throws {
        let stage = Stage(), clock = ManualClock(), loader = ScriptedLoader(isRepeatable: true)
        let service = TokenService(environment: .driven(by: stage, clock: OddClock(clock, fault: .neverWakes)), loader: loader)
        let patient = stage.start { try await service.retrieveToken() }
        clock.advance(by: .seconds(30))
        _ = stage.start { try await service.retrieveToken() }
        #expect(patient.code == .loadTimedOut)
        #expect(loader.loadCount == 2)
    }

    @Test func `a service asks a clock whose sleep returns at once a limited number of times, and never after its release`()
        throws
    {
        let stage = Stage(), clock = SleeplessClock(), loader = ScriptedLoader()
        weak let released = try {
            let service = TokenService(environment: .driven(by: stage, clock: clock), loader: loader)
            let caller = stage.start { try await service.retrieveToken() }
            let hasty = stage.start { try await service.retrieveToken(within: .seconds(10)) }
            #expect(!caller.isDone && !hasty.isDone)
            // There are two sleepers; more sleeps would come from real time.
            #expect((100...300).contains(clock.sleeps.entries.count))
            try #require(stage.start { try await loader.nextCall() }.value).succeed(with: .hour("a"))
            stage.run()
            #expect(caller.value?.value == "a" && hasty.value?.value == "a")
            return service
        }()
        stage.run()
        let count = clock.sleeps.entries.count
        stage.run()
        #expect(clock.sleeps.entries.count == count && released == nil)
    }

    /// A clock as some tests write it: time moves or stands still, and each sleep returns at once.
    private struct SleeplessClock: Clock {
        let sleeps = Log<Void>()
        private let clock = ManualClock()

        var now: ManualClock.Instant { clock.now }
        var minimumResolution: Duration { .zero }
        func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws { sleeps.append(()) }
    }
}
