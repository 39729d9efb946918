import Interleavings
import Synchronization
import Testing

// Every Swift block of the guides of `Interleavings`, unchanged, and run. `GuideTests` compares the two.

private actor Limiter {
    private let clock: VirtualClock
    private var next: VirtualClock.Instant?

    init(clock: VirtualClock) {
        self.clock = clock
    }

    func pass() async throws {
        let turn = max(next ?? clock.now, clock.now)
        next = turn.advanced(by: .seconds(1))
        try await clock.sleep(until: turn)
    }
}

private actor Counter {
    var value = 0

    func increment() {
        value += 1
    }
}

@Suite struct `The guides of Interleavings` {
    @Test func `print which orders were tried`() async throws {
        let summary = try await explore(.exhaustive()) { simulation in
            let total = Mutex(0)
            for amount in 1...3 { simulation.spawn("\(amount)") { total.withLock { $0 += amount } } }
            try await simulation.settle()
            try simulation.require(total.withLock { $0 } == 6, "no amount is lost")
        }
        #expect(summary.ranAllOrders, "\(summary)")
    }

    @Test(arguments: [TimeModel.whenIdle, .anytime])
    func `show a limiter that fails only if a caller wakes up late`(time: TimeModel) async throws {
        let summary = try await explore(.exhaustive(limit: 3_000), time: time, countsFailures: true) { simulation in
            let limiter = Limiter(clock: simulation.clock)
            let passed = Mutex<[Duration]>([])
            for name in ["Anna", "Ben"] {
                simulation.spawn(name) {
                    try await limiter.pass()
                    passed.withLock { $0.append(simulation.clock.now.offset) }
                }
            }
            try await simulation.settle()
            let times = passed.withLock { $0.sorted() }
            try simulation.require(times[1] - times[0] >= .seconds(1), "a second between two callers")
        }
        #expect((summary.failures > 0) == (time == .anytime))
    }

    @Test func `count a counter's increments`() async throws {
        try await explore { simulation in
            let counter = Counter()
            simulation.spawn("Anna") { await counter.increment() }
            simulation.spawn("Ben") { await counter.increment() }
            try await simulation.settle()
            try simulation.require(await counter.value == 2, "both count")
        }
    }

    @Test func `show a process that is killed during its write`() async throws {
        await #expect(throws: ScheduleFailure.self) {
            try await explore { simulation in
                let file = TwoPartFile()
                let app = simulation.process("app")
                app.spawn("writer") { await file.write() }
                simulation.spawn("system") { app.kill() }
                try await simulation.settle()
                try simulation.require(file.isWhole, "the file is whole")
            }
        }
    }

    @Test func `show a lost update between two accesses`() async throws {
        await #expect(throws: ScheduleFailure.self) {
            try await explore(.exhaustive(preemptions: 1), granularity: .accesses) { simulation in
                let account = Account()
                simulation.spawn("Anna") { account.deposit(50) }
                simulation.spawn("Ben") { account.deposit(100) }
                try await simulation.settle()
                try simulation.require(account.balance == 150, "no deposit is lost")
            }
        }
    }
}

private final class TwoPartFile: Sendable {
    private let parts = Mutex(0)

    var isWhole: Bool { parts.withLock { $0 } != 1 }

    func write() async {
        parts.withLock { $0 += 1 }
        await Task.yield()
        parts.withLock { $0 += 1 }
    }
}

// `@unchecked`, because that is the claim which is tested.
private final class Account: @unchecked Sendable {
    @Interleaved("balance") var balance = 0

    func deposit(_ amount: Int) {
        balance += amount
    }
}
