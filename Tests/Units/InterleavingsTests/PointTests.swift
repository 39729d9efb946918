import Interleavings
import Synchronization
import Testing

/// Numbers are drawn in order and passed on; in between, another thread may run first.
@Suite struct `A thread stops` {
    @Test func `after it frees a lock, so that its next action may come too late`() async throws {
        let orders = try await orders { simulation in
            let lock = InterleavedLock("numbers"), last = Mutex(0), handedOn = Mutex<[Int]>([])
            let draw = { @Sendable in
                lock.withLock {
                    last.withLock {
                        $0 += 1; return $0
                    }
                }
            }
            for name in ["Anna", "Ben"] {
                simulation.spawn(name) {
                    let number = draw()
                    handedOn.withLock { $0.append(number) }
                }
            }
            try await simulation.settle()
            return handedOn.withLock { $0 }
        }
        #expect(orders == [[1, 2], [2, 1]])
    }

    @Test func `before it gives a block to a queue, so that blocks may arrive in another order`() async throws {
        let orders = try await orders { simulation in
            let last = Mutex(0), handedOn = Mutex<[Int]>([])
            let queue = simulation.serialQueue("queue")
            for name in ["Anna", "Ben"] {
                simulation.spawn(name) {
                    let number = last.withLock {
                        $0 += 1; return $0
                    }
                    queue.async { handedOn.withLock { $0.append(number) } }
                }
            }
            try await simulation.settle()
            return handedOn.withLock { $0 }
        }
        #expect(orders == [[1, 2], [2, 1]])
    }

    private func orders(_ scenario: @escaping @Sendable (Simulation) async throws -> [Int]) async throws -> Set<[Int]> {
        let orders = Mutex<Set<[Int]>>([])
        try await explore(.exhaustive(), granularity: .accesses) { simulation in
            let order = try await scenario(simulation)
            orders.withLock { _ = $0.insert(order) }
        }
        return orders.withLock { $0 }
    }
}

@Suite struct `The result of an exploration` {
    @Test func `includes each order in which tasks waiting for settle continue`() async throws {
        let orders = Mutex<Set<String>>([])
        try await explore(.exhaustive()) { simulation in
            let order = Mutex("")
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    try await simulation.settle(waitsForTimers: false)
                    order.withLock { $0 += name }
                }
            }
            try await simulation.settle()
            orders.withLock { orders in order.withLock { _ = orders.insert($0) } }
        }
        #expect(orders.withLock { $0 } == ["ab", "ba"])
    }

    @Test(arguments: [20, 50, 100]) func `reports no livelock for waiting by yielding, however small the step limit`(limit: Int)
        async throws
    {
        let summary = try await explore(.exhaustive(limit: 500), stepLimit: limit) { simulation in
            let isSet = Atomic(false)
            simulation.spawn("waits") { while !isSet.load(ordering: .relaxed) { await Task.yield() } }
            simulation.spawn("sets") { isSet.store(true, ordering: .relaxed) }
            try await simulation.settle()
        }
        #expect(summary.failures == 0)
        #expect(summary.coverage.gaps.contains(.patience) || summary.coverage.gaps.contains(.scheduleLimit))
    }

    @Test func `counts an order of both time models once, if no timer waits while work can run`() async throws {
        let summary = try await explore(.mixed(schedules: 100)) { simulation in
            simulation.spawn("only") {}
            try await simulation.settle()
        }
        #expect(summary.distinctSchedules <= 2)
        #expect(try await explore(.exhaustive(preemptions: -1)) { $0.spawn("one") {} }.coverage.bounds != [.preemptions(-1)])
    }
}
