import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Dispatch
import TestStage

/// What surrounds one design in one scenario: a server, a network, a clock, and the threads to run on.
///
/// Time is simulated and moves only when nobody can go on; tasks run on a stage without threads, callbacks on one queue.
/// So the interleaving is the worst one, all callers ask before the first answer is there, and every run of the lab prints
/// the same numbers. Stage 2 could not be run otherwise: what it does on several threads is undefined.
struct World: Sendable {
    let clock = ManualClock()
    let stage = Stage()
    let queue = DispatchQueue(label: "AccessToken")
    let server: SimulatedAuthorizationServer

    init(tokenLifetime: Duration = .seconds(600)) {
        server = SimulatedAuthorizationServer(clock: clock, tokenLifetime: tokenLifetime, executor: stage)
    }

    func tokenService(_ loader: any AccessTokenLoader) -> TokenService {
        TokenService(environment: .driven(by: stage, clock: clock, seed: 1), loader: CallbackTokenLoader(loader))
    }

    /// Runs an async call on the stage and hands its outcome to `handler`.
    func ask(
        _ call: @escaping @Sendable () async throws -> AccessToken,
        then handler: @escaping @Sendable (Result<AccessToken, any Error>) -> Void
    ) {
        perform {
            do { handler(.success(try await call())) } catch { handler(.failure(error)) }
        }
    }

    func perform(_ work: @escaping @Sendable () async -> Void) {
        _ = stage.start(work)
    }

    /// Lets everybody go on until all of them wait for time to pass.
    func settle() {
        // Each round takes work one hop further. The longest way has five: caller, queue, load, answer, queue.
        for _ in 1...6 {
            stage.run()
            queue.sync {}
        }
    }

    /// Lets time pass, in steps short enough to keep the order of the network's answers.
    func pass(_ duration: Duration, step: Duration = Network.step) {
        let end = clock.now.advanced(by: duration)
        while clock.now < end {
            clock.advance(by: step)
            settle()
        }
    }
}
