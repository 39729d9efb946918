import AccessTokens
import AccessTokensTesting
import Testing

@testable import race_lab

/// Follows the events of a real service on a simulated clock.
@Suite struct `Watch over a real run` {
    let clock = ManualClock()
    let stage = Stage()
    let loader = ScriptedLoader(isRepeatable: true)
    let service: TokenService
    let events: AsyncStream<TokenEvent>

    init() {
        service = TokenService(environment: .driven(by: stage, clock: clock, seed: 1), loader: loader)
        events = service.events()
    }

    private func ask() { _ = stage.start { [service] in try await service.retrieveToken() } }

    /// Returns the line of the next event, which has already happened.
    private func next(in watch: inout Watch) async throws -> String {
        for await event in events { return watch.note(event) }
        throw CancellationError()
    }

    private func answer(_ body: (ScriptedLoader.Call) -> Void) async throws {
        body(try await loader.nextCall())
        stage.run()
    }

    @Test func `a run prints each event in a line, and ends when enough tokens were replaced`() async throws {
        var watch = Watch(expiries: 1)
        ask()
        ask()
        #expect(try await next(in: &watch) == "load 1 started: callers wait for it")
        try await answer { $0.succeed(with: AccessToken("a", lifetime: .seconds(60))) }
        #expect(try await next(in: &watch) == "load 1 succeeded: 2 callers waited for it")
        #expect(!watch.isOver)
        clock.advance(by: .seconds(45))
        ask()
        #expect(try await next(in: &watch) == "load 2 started ahead of expiry: callers keep the current token")
        try await answer { $0.fail(with: ScriptedFailure.transient) }
        #expect(try await next(in: &watch).hasPrefix("load 2 failed, the current token stays: Loading a token failed."))
        #expect(!watch.isOver)
        #expect(watch.error != nil)
        clock.advance(by: .seconds(60))
        ask()
        #expect(try await next(in: &watch) == "load 3 started: callers wait for it")
        try await answer { $0.succeed(with: AccessToken("b", lifetime: .seconds(60))) }
        #expect(try await next(in: &watch) == "load 3 succeeded: 1 caller waited for it")
        #expect(watch.isOver)
        #expect(watch.error == nil)
        #expect([watch.loads, watch.failedLoads, watch.tokens] == [3, 1, 2])
    }

    @Test func `a run ends if there is no first token`() async throws {
        var watch = Watch(expiries: 3)
        ask()
        _ = try await next(in: &watch)
        try await answer { $0.fail(with: ScriptedFailure.transient) }
        #expect(try await next(in: &watch) == "load 1 failed, 1 caller got the reason")
        #expect(watch.isOver)
        #expect(watch.error?.contains("temporarily unavailable") == true)
    }

    @Test func `a run ends at a permanent failure, but not at a temporary one`() async throws {
        var watch = Watch(expiries: 3)
        let failures: [ScriptedFailure?] = [nil, .transient, .clientRefused]
        for (failure, isOver) in zip(failures, [false, false, true]) {
            ask()
            _ = try await next(in: &watch)
            try await answer { call in
                if let failure { call.fail(with: failure) } else { call.succeed(with: AccessToken("a", lifetime: .seconds(1))) }
            }
            _ = try await next(in: &watch)
            #expect(watch.isOver == isOver)
            clock.advance(by: .seconds(1))
        }
    }

    @Test func `a forecast says 1 time takes, and 3 times take`() {
        func forecast(_ seconds: Int) -> String {
            Watch.forecast(lifetime: .seconds(5), refreshIn: nil, expiries: 1, seconds: seconds)
        }
        #expect(forecast(60).hasSuffix(": 1 time takes about 3.3 s."))
        #expect(forecast(2).contains("; 1 time would take 3.3 s: "))
    }

    @Test func `an event's line fits a terminal of 80 columns, with the time in front`() {
        let text = "load 1 failed, the current token stays: " + String(repeating: "a server's words ", count: 20)
        let lines = Duration.milliseconds(1_234).line(text).split(separator: "\n")
        #expect(lines[0].hasPrefix("   1.234 s  load 1 failed,"))
        #expect(lines.count > 4 && lines.allSatisfy { $0.count <= 80 })
        #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("            ") && !$0.hasPrefix("             ") })
    }

    @Test(
        arguments: [
            (Duration.seconds(5), "Tokens live 5.0 s and are replaced after about 3.3 s: 3 times take about 9.8 s."),
            (
                .seconds(3600),
                "Tokens live 60 min and are replaced after about 44 min; 3 times would take 2.2 h: the run ends after 60 s "
                    + "(--seconds)."
            ),
            (nil, "The server names no lifetime, so no token expires: the run ends after 60 s (--seconds)."),
        ] as [(Duration?, String)])
    func `a forecast says how long the run takes, or why it ends early`(_ lifetime: Duration?, _ text: String) {
        #expect(Watch.forecast(lifetime: lifetime, refreshIn: nil, expiries: 3, seconds: 60) == text)
    }
}
