import AccessTokens
import AccessTokensDispatch
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 52 on real threads: a sign-out holds when it returns, on every surface", .tags(.threads))
struct FenceThreadTests {
    /// A service with two shims, and the order in which tokens were installed and sign-outs began.
    private final class Program: Sendable {
        private struct State {
            var time = 0, tokens = 0
            /// When the installation of each token had returned.
            var installed: [String: Int] = [:]
            var violations: [String] = []
        }

        let tokens = TokenService { _ in AccessToken("loaded", lifetime: .seconds(3_600)) }
        let shim: AccessTokenService, other: AccessTokenService
        private let state = Lock(State())

        init() {
            shim = AccessTokenService(service: tokens)
            other = AccessTokenService(service: tokens)
        }

        var violations: [String] { state.withLock { $0.violations } }

        /// Signs in, signs out, and asks on every surface; all on one thread.
        func round() {
            let number = state.withLock { state in
                state.tokens += 1
                return state.tokens
            }
            let token = AccessToken("\(number)", lifetime: .seconds(3_600)), done = DispatchSemaphore(value: 0)
            shim.replace(with: token) { _ in done.signal() }
            done.wait()
            let start = state.withLock { state in
                state.installed[token.value] = state.time
                state.time += 1
                return state.time
            }
            shim.reset()
            check(tokens.cachedToken, "a hit", start)
            for (shim, name) in [(other, "the other shim"), (shim, "the same shim")] {
                shim.retrieveToken { result in
                    self.check(try? result.get(), name, start)
                    done.signal()
                }
                done.wait()
            }
            shim.reset()
            Task.detached {
                self.check(try? await self.tokens.retrieveToken(), "an async caller", start)
                done.signal()
            }
            done.wait()
        }

        /// No token counts whose installation had returned before the sign-out began.
        private func check(_ token: AccessToken?, _ surface: String, _ start: Int) {
            guard let token else { return }
            state.withLock { state in
                if let time = state.installed[token.value], time < start { state.violations.append(surface) }
            }
        }
    }

    @Test(arguments: [1, 8])
    func `52: in 1,000 rounds, no surface hands out a token from before the sign-out`(threads: Int) async {
        let program = Program(), rounds = Int.everyday(200, thorough: 1_000)
        await withTaskGroup { group in
            for _ in 0..<threads {
                group.addTask {
                    await withCheckedContinuation { continuation in
                        Thread.detachNewThread {
                            for _ in 0..<rounds { program.round() }
                            continuation.resume()
                        }
                    }
                }
            }
        }
        #expect(program.violations.isEmpty, "\(program.violations.count) times, at first \(program.violations.first ?? "")")
    }
}
