import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// Gives each caller a load and a time limit of its own; the first to end answers the caller and cancels the other.
///
/// But cancelling is only a request. The limit has passed, and its task has woken but not yet run. The load's answer arrives,
/// cancels that task and answers the caller. Then the limit's task continues, and answers again. Swift's own continuation would
/// trap; the one of this exhibit counts the answers.
///
/// The bug sits in the two lines that cancel, neither of which checks whether it was in time.
struct DoublyAnsweringService: Sendable {
    let loader: any TokenLoader
    let clock: any Clock<Duration>
    let limit: Duration
    let executor: (any TaskExecutor)?
    /// Told of each answer, in place of Swift's own check.
    let onAnswer: WatchedContinuation.Observer

    struct TimedOut: Error, CustomStringConvertible {
        let description = "the time limit has passed"
    }

    func retrieveToken() async throws -> AccessToken {
        try await WatchedContinuation.wait(onResume: onAnswer) { continuation in
            let load = Task(executorPreference: executor) { try await loader.loadToken(replacing: nil) }
            let alarm = Task(executorPreference: executor) {
                try await clock.sleep(for: limit)
                load.cancel()
                continuation.resume(with: .failure(TimedOut()))
            }
            Task(executorPreference: executor) {
                let result = await load.result
                // The alarm has answered.
                guard !load.isCancelled else { return }
                // The race: the alarm may have rung already, and be waiting for its turn.
                alarm.cancel()
                continuation.resume(with: result)
            }
        }
    }
}

/// A continuation that reports each resume; a checked one would trap at the second.
final class WatchedContinuation: Sendable {
    typealias Observer = @Sendable (_ number: Int, _ result: Result<AccessToken, any Error>) -> Void

    private struct State {
        var continuation: CheckedContinuation<AccessToken, any Error>?
        var resumes = 0
    }

    private let state: Lock<State>
    private let onResume: Observer

    private init(_ continuation: CheckedContinuation<AccessToken, any Error>, _ onResume: @escaping Observer) {
        state = Lock(State(continuation: continuation))
        self.onResume = onResume
    }

    static func wait(onResume: @escaping Observer, _ body: (WatchedContinuation) -> Void) async throws -> AccessToken {
        try await withCheckedThrowingContinuation { body(WatchedContinuation($0, onResume)) }
    }

    func resume(with result: Result<AccessToken, any Error>) {
        let (number, continuation) = state.withLock { state in
            state.resumes += 1
            defer { state.continuation = nil }
            return (state.resumes, state.continuation)
        }
        onResume(number, result)
        continuation?.resume(with: result)
    }
}

extension Exhibit {
    static let doubleResume = Exhibit(
        16, "A continuation is resumed twice", source: "okta-mobile-swift#170", time: .anytime,
        broken: { simulation in
            let loader = simulation.loader(of: simulation.server(latency: latency))
            let service = DoublyAnsweringService(
                loader: loader, clock: simulation.seams.clock, limit: limit, executor: simulation.seams.executor
            ) { number, result in
                let text =
                    switch result {
                    case .success(let token): token.value
                    case .failure(let error): "\(error)"
                    }
                simulation.log("answer \(number): \(text)", by: "service")
                try? simulation.require(number == 1, "a caller is answered once")
            }
            try await answerAtTheLimit(simulation) { try await service.retrieveToken() }
        },
        mended: { simulation in
            let loader = simulation.loader(of: simulation.server(latency: latency))
            let service = simulation.service(policy: RefreshPolicy(loadTimeout: limit), loader: loader)
            try await answerAtTheLimit(simulation) { try await service.retrieveToken() }
        })

    private static let limit = Duration.seconds(30)
    private static let latency = Duration.seconds(29)

    /// The answer arrives just before the limit, on a machine that may be busy.
    private static func answerAtTheLimit(
        _ simulation: Simulation, _ retrieve: @escaping Retrieve
    ) async throws {
        simulation.spawn("caller") { _ = try await simulation.ask(retrieve) }.allowingError()
        try await simulation.settle()
    }
}
