import AccessTokens
import AccessTokensTesting
import Interleavings
import Synchronization
import TestBudgets
import Testing

// The Swift blocks of `LoggingAndMetrics` that aren't part of a recipe, unchanged, and run.

private struct EachCaller {
    let tokens: TokenService
    let log: @Sendable (String) -> Void

    func tokenForRequest() async throws -> AccessToken {
        do {
            return try await tokens.retrieveToken()
        } catch {
            log("no token: \(error)")  // once for each caller who waited
            throw error
        }
    }
}

func watch(
    _ tokens: TokenService,
    _ report: @escaping @Sendable (TokenEvent) -> Void
) -> Task<Void, Never> {
    // Before the task, so that none is missed.
    let events = tokens.events()
    return Task {
        for await event in events { report(event) }
    }
}

@Suite(.inRealTime) struct `The guide to logging` {
    @Test func `shows a line for each caller, where one load failed`() async throws {
        try await explore(.mixed(schedules: 1, seed: 1)) { simulation in
            let clock = simulation.clock
            let tokens = TokenService(environment: .driven(by: simulation.taskExecutor, clock: clock, seed: 1)) { _ in
                try await clock.sleep(for: .seconds(1))
                throw ScriptedFailure()
            }
            let events = tokens.events()
            let lines = Lines()
            let each = EachCaller(tokens: tokens) { lines.add($0) }
            for number in 1...10 { simulation.spawn("caller \(number)") { try await each.tokenForRequest() }.allowingError() }
            try await simulation.settle()
            try simulation.require(lines.all.count == 10, "a line for each caller")
            let event = await events.first { $0.name == .loadFailed }
            try simulation.require(
                event?.description
                    == "loadFailed generation=0 load=1 callers=10 error=loadFailed cause=temporarily_unavailable remedy=retry",
                "one event for all")
        }
    }

    @Test func `reports what happens, until the service is released`() async throws {
        let lines = Lines()
        func begin() async throws -> Task<Void, Never> {
            let tokens = TokenService { _ in AccessToken("a") }
            let watching = watch(tokens) { lines.add("\($0.name)") }
            _ = try await tokens.retrieveToken()
            return watching
        }
        try await begin().value
        #expect(lines.all == ["loadStarted", "loadSucceeded"])
    }
}

private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func add(_ line: String) { lines.withLock { $0.append(line) } }
}
