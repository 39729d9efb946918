import AccessTokens
import AccessTokensDispatch
import Interleavings
import TokenServiceConcurrency

extension CallbackProgram {
    /// One thread, and the calls that it made, in order.
    final class Thread: Sendable {
        private struct Call {
            let limit: Duration?
            let began: Duration
            /// Tokens that it must not get: those that this thread had refused, and those from before its fences.
            let refused: Set<Int>
            let fence: Int
            var call: AccessTokenService.Call?
            var hasBegun = false
            /// Whether it was cancelled before its handler was called.
            var isCancelled = false
            var answers = 0
            var ended: (time: Duration, moment: Int)?
            var result: Result<AccessToken, any Error>?
        }

        private struct State {
            var calls: [Call] = []
            var refused: Set<Int> = []
            var fence = -1
            var moments = 0
        }

        let name: String
        private let program: CallbackProgram
        private let state = Lock(State())

        init(name: String, program: CallbackProgram) {
            self.name = name
            self.program = program
        }

        /// Performs three typical operations of a program on a shim.
        func act() async throws {
            let simulation = program.simulation
            for _ in 1...3 {
                switch simulation.choose("\(name)'s turn", 9) {
                case 0, 1: ask()
                case 2: ask(within: simulation.choose("limit", among: [.zero, .seconds(1), .seconds(35)]))
                case 3: if let token = program.service.cachedToken { refuse(token) }
                case 4: fence { handler in program.shim.replace(with: program.newToken()) { _ in handler() } }
                case 5: fence { handler in program.shim.reset { _ in handler() } }
                case 6: operate { program.shim.retryNow(then: $0) }
                case 7: cancel()
                default: try await simulation.clock.sleep(for: .seconds(2))
                }
            }
        }

        func ask(within limit: Duration? = nil) {
            let index = begin(limit)
            program.simulation.log(limit.map { "asks, within \($0)" } ?? "asks")
            let call = program.shim.retrieveToken(within: limit) { result in
                self.state.withLock { $0.calls[index].hasBegun = true }
                self.program.handle { self.end(index, with: result) }
            }
            state.withLock { $0.calls[index].call = call }
        }

        /// Cancels the thread's last call whose handler hasn't been called.
        private func cancel() {
            let last = state.withLock { state in
                state.calls.lastIndex { $0.call != nil && !$0.hasBegun }.map { ($0, state.calls[$0].call) }
            }
            guard let (index, call) = last else { return }
            program.simulation.log("cancels \(name)'s call \(index)")
            call?.cancel()
            state.withLock { $0.calls[index].isCancelled = !$0.calls[index].hasBegun }
        }

        func refuse(_ token: AccessToken) {
            program.simulation.log("refuses \(token.value)")
            operate { program.shim.invalidate(token, then: $0) }
            state.withLock { _ = $0.refused.insert(Int(token.value) ?? -1) }
        }

        private func fence(_ operation: (_ handler: @escaping @Sendable () -> Void) -> Void) {
            let last = program.last
            operate(operation)
            state.withLock { $0.fence = last }
        }

        private func operate(_ operation: (_ handler: @escaping @Sendable () -> Void) -> Void) {
            let index = begin(nil)
            operation { self.program.handle { self.end(index, with: nil) } }
        }

        private func begin(_ limit: Duration?) -> Int {
            state.withLock { state in
                state.calls.append(Call(limit: limit, began: program.time, refused: state.refused, fence: state.fence))
                return state.calls.count - 1
            }
        }

        private func end(_ index: Int, with result: Result<AccessToken, any Error>?) {
            program.simulation.log("\(name)'s call \(index) ends: \(result.map { "\($0.map(\.value))" } ?? "done")")
            state.withLock { state in
                state.moments += 1
                state.calls[index].answers += 1
                state.calls[index].ended = (program.time, state.moments)
                state.calls[index].result = result
            }
        }

        /// Checks all calls against the guarantees.
        func check(isPunctual: Bool) throws {
            let calls = state.withLock { $0.calls }, simulation = program.simulation
            var moment = 0
            for call in calls {
                let expected = call.isCancelled ? 0 : 1
                try simulation.require(call.answers == expected, "each handler once, and none after a cancellation")
                guard let ended = call.ended else { continue }
                let isLate = call.limit.map { ended.time - call.began >= $0 } ?? false
                if isPunctual, let limit = call.limit {
                    try simulation.require(ended.time - call.began <= max(limit, .zero), "no call waits beyond its limit")
                }
                if !isLate {
                    try simulation.require(ended.moment > moment, "in the order of the calls")
                    moment = ended.moment
                }
                switch call.result {
                case .success(let token)?:
                    let number = Int(token.value) ?? -1
                    try simulation.require(!call.refused.contains(number), "no refused token")
                    try simulation.require(number > call.fence, "no token from before a fence")
                case .failure(let error as TokenServiceError)? where error.code == .deadlineExceeded:
                    try simulation.require(isLate, "no limit before its time")
                default: break
                }
            }
        }
    }
}
