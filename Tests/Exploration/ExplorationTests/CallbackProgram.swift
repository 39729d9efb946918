import AccessTokens
import AccessTokensDispatch
import Interleavings
import TokenServiceConcurrency

/// Calls of threads on one shim, and their answers.
final class CallbackProgram: Sendable {
    let simulation: Simulation
    let service: TokenService
    let shim: AccessTokenService
    /// Tokens are numbered in the order in which their loads begin, or their replacements are called.
    private let tokens: Counter
    private let handlers = Lock(0)

    init(_ simulation: Simulation, isConcurrent: Bool) {
        let tokens = Counter()
        service = TokenService(
            environment: .driven(by: simulation.taskExecutor, clock: InterruptedClock(clock: simulation.clock), seed: 1),
            isRepeatable: true
        ) { _ in
            let number = tokens.next()
            let latency = simulation.choose("latency", among: [.zero, .seconds(2), .seconds(40)]) ?? Duration.zero
            try await simulation.clock.sleep(for: latency)
            return AccessToken("\(number)", lifetime: .seconds(3600))
        }
        let queue = isConcurrent ? simulation.concurrentQueue("queue") : simulation.serialQueue("queue")
        shim = AccessTokenService(service: service) { queue.async($0) }
        self.simulation = simulation
        self.tokens = tokens
    }

    var time: Duration { simulation.clock.now.offset }
    /// The newest token.
    var last: Int { tokens.value }

    func newToken() -> AccessToken { AccessToken("\(tokens.next())", lifetime: .seconds(3600)) }

    /// Runs a handler's body; handlers never overlap, on any queue.
    func handle(_ body: () -> Void) {
        let others = handlers.withLock { count in
            defer { count += 1 }
            return count
        }
        interleavingPoint("a handler runs")
        body()
        handlers.withLock { $0 -= 1 }
        try? simulation.require(others == 0, "one handler at a time")
    }
}

private final class Counter: Sendable {
    private let number = Lock(0)

    var value: Int { number.withLock { $0 } }

    func next() -> Int {
        number.withLock { number in
            number += 1
            return number
        }
    }
}

/// A simulation's clock whose reading is a point where another thread may run.
struct InterruptedClock: Clock {
    let clock: VirtualClock

    var minimumResolution: Duration { clock.minimumResolution }

    var now: VirtualClock.Instant {
        interleavingPoint("reads the clock")
        return clock.now
    }

    func sleep(until deadline: VirtualClock.Instant, tolerance: Duration?) async throws {
        try await clock.sleep(until: deadline, tolerance: tolerance)
    }
}
