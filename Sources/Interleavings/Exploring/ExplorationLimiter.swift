import Dispatch
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
        var waiting: [@Sendable () -> Void] = []
    }

    private let state: Lock<State>

    /// The process's limiter: half of the processors, at least one.
    static let shared = ExplorationLimiter(limit: max(sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2, 1))

    /// One exploration at a time drives everything: two that did would share the program's global actors.
    private static let alone = ExplorationLimiter(limit: 1)

    /// Runs `body` when it is its turn.
    ///
    /// - Parameter alone: Whether it drives everything.
    static func run<Result>(alone: Bool, _ body: () async throws -> Result) async rethrows -> Result {
        guard alone else { return try await shared.run(body) }
        return try await Self.alone.run { try await shared.run(body) }
    }

    init(limit: Int) {
        state = Lock(State(free: limit))
    }

    /// Runs `body` when it is its turn.
    func run<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        await enter()
        defer { leave() }
        return try await Self.$current.withValue(self) { try await body() }
    }

    /// The limiter in which the current task has a place.
    @TaskLocal private static var current: ExplorationLimiter?

    /// Waits in real time for something that costs no processor, and gives the place to the next exploration meanwhile.
    static func waiting<Result>(_ wait: () -> Result) -> Result {
        guard let limiter = current else { return wait() }
        limiter.leave()
        defer { limiter.enterAgain() }
        return wait()
    }

    private func enter() async {
        await withCheckedContinuation { continuation in
            let mayEnter = state.withLock { state in
                guard state.free == 0 else {
                    state.free -= 1
                    return true
                }
                state.waiting.append { continuation.resume() }
                return false
            }
            if mayEnter { continuation.resume() }
        }
    }

    /// Blocks the exploration's own thread, ahead of those that have not begun.
    private func enterAgain() {
        let isNext = DispatchSemaphore(value: 0)
        state.withLock { state in
            guard state.free == 0 else {
                state.free -= 1
                isNext.signal()
                return
            }
            state.waiting.insert({ isNext.signal() }, at: 0)
        }
        isNext.wait()
    }

    private func leave() {
        let next = state.withLock { state -> (@Sendable () -> Void)? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.free += 1
            return nil
        }
        next?()
    }
}
