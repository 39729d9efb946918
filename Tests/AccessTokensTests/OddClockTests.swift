import AccessTokens
import AccessTokensTesting
import TestStage
import Testing

@Suite("Guarantee 9, whatever the clock does: timers are only hints")
struct OddClockTests {
    @Test("a clock that wakes too early still ends the wait, at its time", arguments: [1, 999])
    func wakesEarly(milliseconds: Int) throws {
        let stage = Stage(), clock = ManualClock(), loader = ScriptedLoader()
        let odd = OddClock(clock, fault: .wakesEarly(by: .milliseconds(milliseconds)))
        let service = TokenService(environment: .driven(by: stage, clock: odd), loader: loader)
        let patient = stage.start { try await service.retrieveToken() }
        let hasty = stage.start { try await service.retrieveToken(within: .seconds(10)) }
        clock.advance(by: .seconds(10) - .milliseconds(milliseconds))
        // The clock says that it is not yet time, and goes on saying so: one look for each run; a caller who is answered
        // needs a few of them to come back.
        for _ in 0..<20 { stage.runOnce() }
        #expect(!hasty.isDone)
        clock.advance(by: .milliseconds(milliseconds))
        stage.run()
        #expect(hasty.code == .deadlineExceeded)
        clock.advance(by: .seconds(20))
        stage.run()
        #expect(patient.code == .loadTimedOut)
    }

    @Test("a clock that cannot sleep ends waits at once, rather than never")
    func failsToSleep() throws {
        let stage = Stage(), loader = ScriptedLoader()
        let service = TokenService(
            environment: .driven(by: stage, clock: OddClock(ManualClock(), fault: .failsToSleep)), loader: loader)
        let caller = stage.start { try await service.retrieveToken() }
        #expect(caller.code == .loadTimedOut)
    }

    @Test(
        "limits of any size are limits, on the real clock too",
        arguments: [Duration.seconds(Int64.max), .seconds(Int64.max) * 18, Duration(attoseconds: .max)])
    func hugeLimits(limit: Duration) async throws {
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

    @Test("a clock that wakes nobody: whoever comes next finds that the load has taken too long")
    func neverWakes() throws {
        let stage = Stage(), clock = ManualClock(), loader = ScriptedLoader(isRepeatable: true)
        let service = TokenService(environment: .driven(by: stage, clock: OddClock(clock, fault: .neverWakes)), loader: loader)
        let patient = stage.start { try await service.retrieveToken() }
        clock.advance(by: .seconds(30))
        _ = stage.start { try await service.retrieveToken() }
        #expect(patient.code == .loadTimedOut)
        #expect(loader.loadCount == 2)
    }
}
