import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Lets so many explorations run at once as leave the machine room for others, in the order in which they came.
///
/// An exploration computes without a pause. As many of them as tests run in parallel would starve the pool on which
/// everybody else in the process runs, and make slow what is not theirs.
final class Turnstile: Sendable {
    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Lock<State>

    /// Half of the processors, for one process; one at least.
    static let shared = Turnstile(width: max(sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2, 1))

    init(width: Int) {
        state = Lock(State(free: width))
    }

    /// Runs `body` when it is its turn.
    func pass<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        await enter()
        defer { leave() }
        return try await body()
    }

    private func enter() async {
        await withCheckedContinuation { continuation in
            let mayEnter = state.withLock { state in
                guard state.free == 0 else {
                    state.free -= 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if mayEnter { continuation.resume() }
        }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?.resume()
    }
}
