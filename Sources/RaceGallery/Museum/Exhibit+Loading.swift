import AccessTokens
import Interleavings
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Exhibit {
    /// What a caller does.
    typealias Retrieve = @Sendable () async throws -> AccessToken

    /// The token that a service has from the beginning, where its first load is of no interest.
    static let signedIn = AccessToken("token 0", lifetime: .seconds(3600), refreshToken: "grant 0")

    /// The server's end: loads are numbered from 1, decided when they begin, and answered a second later.
    ///
    /// A load that was cancelled before does not begin: as with `URLSession`, the server hears nothing of it.
    final class Loader: TokenLoader {
        typealias Answer = @Sendable (_ number: Int, _ previous: AccessToken?) async throws -> AccessToken

        let isRepeatable: Bool
        private let simulation: Simulation
        private let latency: @Sendable (_ number: Int) -> Duration
        private let answer: Answer
        private let count = Lock(0)

        init(
            _ simulation: Simulation, isRepeatable: Bool = false,
            latency: @escaping @Sendable (_ number: Int) -> Duration = { _ in .seconds(1) },
            answer: @escaping Answer = { number, _ in AccessToken("token \(number)", lifetime: .seconds(3600)) }
        ) {
            self.isRepeatable = isRepeatable
            self.simulation = simulation
            self.latency = latency
            self.answer = answer
        }

        /// How many loads have begun.
        var begun: Int { count.withLock { $0 } }

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            guard !Task.isCancelled else {
                simulation.log("is cancelled before its load begins")
                throw CancellationError()
            }
            let number = count.withLock { count in
                count += 1
                return count
            }
            log("begins", number)
            do {
                let decision: Result<AccessToken, any Error>
                do { decision = .success(try await answer(number, previous)) } catch { decision = .failure(error) }
                try await simulation.clock.sleep(for: latency(number))
                let token = try decision.get()
                log("brings \(token.value)", number)
                return token
            } catch {
                log("fails: \(error)", number)
                throw error
            }
        }

        /// By the load, not by whoever started it: a flight that inherits a caller's context outlives its interest.
        private func log(_ text: @autoclosure () -> String, _ number: Int) {
            simulation.log(text(), by: "load \(number)")
        }

        /// A mended service: all its parts are the simulation's.
        func service() -> TokenService {
            TokenService(
                environment: .driven(
                    by: simulation.taskExecutor, clock: simulation.clock, wallClock: { Date(timeIntervalSince1970: 0) }, seed: 1),
                loader: self)
        }
    }

    /// Callers who ask all at once; each ends with its token's text.
    static func callers(
        _ numbers: ClosedRange<Int>, of simulation: Simulation, _ retrieve: @escaping Retrieve
    ) -> [Task<String, any Error>] {
        numbers.map { number in simulation.spawn("caller \(number)") { try await retrieve().value } }
    }
}

extension Task where Failure == any Error {
    /// Whether the task ended because it, or the load that it waited for, was cancelled.
    var wasCancelled: Bool {
        get async {
            guard case .failure(let error) = await result else { return false }
            return error is CancellationError || (error as? TokenServiceError)?.underlying is CancellationError
        }
    }
}
