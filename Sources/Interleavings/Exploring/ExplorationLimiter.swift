import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Limits how many explorations run at once; the others wait in the order of their arrival.
///
/// An exploration computes without a pause. One for each test that runs in parallel would starve the pool, and slow down
/// everything else in the process.
final class ExplorationLimiter: Sendable {
    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Lock<State>

    /// The process's limiter: half of the processors, at least one.
    static let shared = ExplorationLimiter(limit: max(sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2, 1))

    init(limit: Int) {
        state = Lock(State(free: limit))
    }

    /// Runs `body` when it is its turn.
    func run<Result>(_ body: () async throws -> Result) async rethrows -> Result {
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
