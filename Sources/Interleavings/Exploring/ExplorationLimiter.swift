import Dispatch
import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Limits how many explorations run at once to one for each processor, or to one that drives everything.
///
/// An exploration computes without a pause. If each parallel test ran one, they would starve the pool and slow down everything
/// else in the process. Those that drive everything share the program's global actors and the runtime's hooks, so each of them
/// runs alone. Those start ahead of other waiting explorations, since ordinary tests use the other processors meanwhile.
final class ExplorationLimiter: Sendable {
    /// A place for one exploration, or all of them.
    private struct Claim {
        let places: Int
        /// Whether it takes all places for a new exploration, which can't begin while another such one waits in real time.
        let beginsAlone: Bool
        let proceed: @Sendable () -> Void
    }

    private struct State {
        var free: Int
        /// Whether an exploration that runs alone has begun and not ended.
        var oneIsAlone = false
        var waiting: [Claim] = []

        /// Takes the places for the claims whose turn it is.
        mutating func takeNext() -> [Claim] {
            var next: [Claim] = []
            while let index = waiting.firstIndex(where: { !($0.beginsAlone && oneIsAlone) }), waiting[index].places <= free {
                let claim = waiting.remove(at: index)
                free -= claim.places
                if claim.beginsAlone { oneIsAlone = true }
                next.append(claim)
            }
            return next
        }
    }

    /// The places that an exploration holds while it runs.
    private struct Holding {
        let limiter: ExplorationLimiter
        let places: Int
    }

    private let state: Lock<State>
    private let limit: Int

    /// The process's limiter.
    static let shared = ExplorationLimiter(limit: max(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 1))

    init(limit: Int) {
        self.limit = limit
        state = Lock(State(free: limit))
    }

    /// Runs `body` when it is its turn.
    ///
    /// - Parameter alone: Whether no other exploration may run beside it.
    func run<Result>(alone: Bool = false, _ body: () async throws -> Result) async rethrows -> Result {
        let places = alone ? limit : 1
        await withCheckedContinuation { continuation in
            let claim = Claim(places: places, beginsAlone: alone) { continuation.resume() }
            // Explorations that run alone keep the order of their arrival.
            enter(claim) { alone && !$0.beginsAlone }
        }
        defer { leave(places, endsAlone: alone) }
        return try await Self.$current.withValue(Holding(limiter: self, places: places)) { try await body() }
    }

    /// The places that the current task has.
    @TaskLocal private static var current: Holding?

    /// Waits in real time for something that needs no processor, and lets other explorations run meanwhile.
    static func waiting<Result>(_ wait: () -> Result) -> Result {
        guard let holding = current else { return wait() }
        holding.limiter.leave(holding.places)
        defer { holding.limiter.enterAgain(holding.places) }
        return wait()
    }

    /// Blocks the exploration's own thread, ahead of explorations that have not begun.
    private func enterAgain(_ places: Int) {
        let isNext = DispatchSemaphore(value: 0)
        enter(Claim(places: places, beginsAlone: false) { isNext.signal() }) { _ in true }
        isNext.wait()
    }

    /// - Parameter isLater: Whether another claim has its turn after this one.
    private func enter(_ claim: Claim, before isLater: (Claim) -> Bool) {
        proceed {
            let index = $0.waiting.firstIndex(where: isLater) ?? $0.waiting.endIndex
            $0.waiting.insert(claim, at: index)
        }
    }

    private func leave(_ places: Int, endsAlone: Bool = false) {
        proceed {
            $0.free += places
            if endsAlone { $0.oneIsAlone = false }
        }
    }

    private func proceed(after change: (inout State) -> Void) {
        let next = state.withLock { state in
            change(&state)
            return state.takeNext()
        }
        for claim in next { claim.proceed() }
    }
}
