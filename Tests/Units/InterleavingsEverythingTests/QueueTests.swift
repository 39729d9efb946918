import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything
import Synchronization
import Testing
import UntouchedCode

@Suite struct `Driving queues` {
    @Test(arguments: [Granularity.jobs, .accesses])
    func `puts everything in Dispatch under control`(_ granularity: Granularity) async throws {
        try await explore(.random(schedules: 50), granularity: granularity, driving: .everythingAndQueues) { simulation in
            let notes = Notes()
            let problems = await useQueues { notes.add($0) }
            try simulation.require(problems.isEmpty, "\(problems)")
            try simulation.require(notes.all == Self.expected, "\(notes.all)")
        }
    }

    /// Whole seconds: virtual time is exact.
    private static let expected = ["after 5", "wall 8", "groups 8", "semaphores 13", "items 15", "end 15"]

    @Test func `drives tasks, actors and sleeps as without queues`() async throws {
        try await explore(.random(schedules: 20), driving: .everythingAndQueues) { simulation in
            try await useEverything { _ in }
            try simulation.require(simulation.clock.now.offset == .seconds(25), "it took \(simulation.clock.now)")
        }
    }

    @Test func `never sees the article's third stage fail, in any order`() async throws {
        let summary = try await explore(.exhaustive(), driving: .everythingAndQueues) { simulation in
            try await retrieveTwice(simulation) { AccessTokenService(loader: $0).retrieveToken }
        }
        #expect(summary.coverage.gaps.isEmpty)
        #expect(summary.schedules > 10)
        try await explore(.random(schedules: 200), granularity: .accesses, driving: .everythingAndQueues) { simulation in
            try await retrieveTwice(simulation) { AccessTokenService(loader: $0).retrieveToken }
        }
    }

    @Test func `finds a service that decides outside its queue loading twice, and replays that`() async throws {
        let scenario: @Sendable (Simulation) async throws -> Void = { simulation in
            try await retrieveTwice(simulation) { HastyAccessTokenService(loader: $0).retrieveToken }
        }
        let failure = await #expect(throws: ScheduleFailure.self) { try await explore(driving: .everythingAndQueues, scenario) }
        let found = try #require(failure)
        #expect("\(found)".contains("2 loads"))
        #expect("\(found)".contains("driving: .everythingAndQueues"))
        #expect(found.isMinimal)
        #expect(found.choices.count { $0 > 0 } == 1)
        let again = await #expect(throws: ScheduleFailure.self) {
            try await explore(.replay(found.schedule), time: found.time, driving: .everythingAndQueues, scenario)
        }
        #expect(again?.diagram == found.diagram)
    }

    @Test(arguments: [
        ("sync on its own queue", "'A' waits for the queue 'A'"),
        ("queues that wait for each other", "'A' waits for the queue 'B'. 'B' waits for the queue 'A'"),
        ("a semaphore", "'scenario' waits for the semaphore 1"), ("a group", "'scenario' waits for the group 1"),
        ("a work item", "'scenario' waits for the work item 1"),
    ])
    func `names the code that waits forever`(_ way: String, detail: String) async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.exhaustive(), driving: .everythingAndQueues) { _ in
                let (a, b) = (DispatchQueue(label: "A"), DispatchQueue(label: "B"))
                waitForever(way, a, b)
                await withCheckedContinuation { done in a.async { b.async { done.resume() } } }
            }
        }
        #expect((failure?.underlying as? ExplorationProblem)?.code == .deadlock)
        let text = failure.map { "\($0.underlying)" } ?? ""
        #expect(text.contains(detail))
        #expect(failure?.diagram.contains("waits forever") == true)
    }

    @Test(arguments: [true, false])
    func `makes queues with one target exclude each other`(hasTarget: Bool) async throws {
        let summary = try await explore(.exhaustive(), driving: .everythingAndQueues, countsFailures: true) { simulation in
            let target = hasTarget ? DispatchQueue(label: "target") : nil
            let other = DispatchQueue(label: "other")
            let (order, count) = (Notes(), DispatchGroup())
            for name in ["A", "B"] {
                DispatchQueue(label: name, target: target).async(group: count) {
                    if let target { dispatchPrecondition(condition: .onQueue(target)) }
                    order.add(name)
                    other.sync {}
                    order.add(name)
                }
            }
            await withCheckedContinuation { done in count.notify(queue: other) { done.resume() } }
            let names = order.all
            try simulation.require(names[0] == names[1], "\(names)")
        }
        #expect((summary.failures == 0) == hasTarget)
        #expect(summary.coverage.gaps.isEmpty)
    }

    @Test func `lets hundreds of threads wait`() async throws {
        try await explore(.random(schedules: 2), driving: .everythingAndQueues) { simulation in
            let semaphore = DispatchSemaphore(value: 0)
            for _ in 1...400 { simulation.spawn("waiter") { wait(for: semaphore) } }
            simulation.spawn("signaller") { for _ in 1...400 { semaphore.signal() } }
        }
    }

    @Test func `doesn't count the signals with which Dispatch wakes its own pool as steps`() async throws {
        func steps(_ body: @escaping @Sendable () -> Void) async throws -> Int {
            let summary = try await explore(.exhaustive(), granularity: .accesses, driving: .everythingAndQueues) { simulation in
                simulation.spawn("code") { body() }
            }
            return summary.steps
        }
        // Each replaced value is handled on the real pool, which may have to wake a thread.
        let replaced = try await steps {
            let (queue, key) = (DispatchQueue(label: "A"), DispatchSpecificKey<Int>())
            for number in 1...100 { queue.setSpecific(key: key, value: number) }
        }
        #expect(try await steps {} == replaced)
    }

    @Test func `leaves a timer that restarts itself, and the execution ends`() async throws {
        let summary = try await explore(.random(schedules: 20), driving: .everythingAndQueues) { simulation in
            @Sendable func tick() { DispatchQueue.global().asyncAfter(deadline: .now() + 1) { tick() } }
            tick()
            try await Task.sleep(for: .seconds(10))
            try simulation.require(simulation.clock.now.offset == .seconds(10), "\(simulation.clock.now)")
        }
        #expect(summary.failures == 0)
    }

    @Test(arguments: ["a queue", "the main queue", "a queue with a target", "barriers"])
    func `lets delayed blocks, in their order, come behind what tasks send that wake then`(_ kind: String) async throws {
        let orders = Orders()
        let summary = try await explore(.exhaustive(), driving: .everythingAndQueues) { simulation in
            let target = kind == "a queue with a target" ? DispatchQueue(label: "target") : nil
            let attributes: DispatchQueue.Attributes = kind == "barriers" ? .concurrent : []
            let queue = kind == "the main queue" ? .main : DispatchQueue(label: "queue", attributes: attributes, target: target)
            let order = Notes()
            simulation.spawn("first") {
                for name in ["one", "two"] { queue.asyncAfter(deadline: .now() + 1, flags: .barrier) { order.add(name) } }
            }
            simulation.spawn("other") {
                try await Task.sleep(for: .seconds(1))
                queue.async(flags: .barrier) { order.add("task's") }
            }
            try await simulation.settle()
            orders.add(order.all)
        }
        #expect(summary.coverage.gaps.isEmpty)
        #expect(orders.all == [["task's", "one", "two"], ["one", "task's", "two"], ["one", "two", "task's"]])
    }

    @Test func `an exploration finds code that expects a delayed block to come first`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(driving: .everythingAndQueues) { simulation in
                let (cache, queue) = (Notes(), DispatchQueue(label: "cache"))
                queue.asyncAfter(deadline: .now() + 60) { cache.add("expired") }
                try await Task.sleep(for: .seconds(60))
                queue.async { cache.add("read") }
                try await simulation.settle()
                try simulation.require(cache.all.first == "expired", "read after 60 s: \(cache.all)")
            }
        }
        #expect(failure.map { "\($0)".contains("read after 60 s") } == true)
        #expect(failure?.isMinimal == true)
    }

    @Test func `runs the same schedules in each process`() async throws {
        var outputs: Set<[UInt8]> = []
        for _ in 1...2 {
            let result = try await #require(processExitsWith: .success, observing: [\.standardErrorContent]) {
                let notes = Notes()
                try await explore(.mixed(schedules: 100, seed: 7), driving: .everythingAndQueues) { simulation in
                    try await retrieveTwice(simulation) { AccessTokenService(loader: $0).retrieveToken }
                    notes.add("\(simulation.choose("die", 1_000)) \(simulation.clock.now)")
                }
                FileHandle.standardError.write(Data(notes.all.joined(separator: "\n").utf8))
            }
            outputs.insert(result.standardErrorContent)
        }
        #expect(outputs.count == 1)
        #expect(outputs.first.map { $0.count > 1_000 } == true)
    }
}

/// The orders in which schedules ran.
private final class Orders: Sendable {
    private let orders = Mutex<Set<[String]>>([])

    var all: Set<[String]> { orders.withLock { $0 } }
    func add(_ order: [String]) { orders.withLock { _ = $0.insert(order) } }
}

/// Two callers get the one token of one load.
func retrieveTwice(
    _ simulation: Simulation,
    _ makeService: (AccessTokenLoader) -> @Sendable (@escaping AccessTokenService.Handler) -> Void
) async throws {
    let loader = AccessTokenLoader()
    let retrieve = makeService(loader)
    for name in ["Anna", "Ben"] {
        simulation.spawn(name) {
            let result = await withCheckedContinuation { done in retrieve { done.resume(returning: $0) } }
            _ = try result.get()
        }
    }
    try await simulation.settle()
    try simulation.require(loader.count == 1, "\(loader.count) loads")
}

private func wait(for semaphore: DispatchSemaphore) { semaphore.wait() }

private func waitForever(_ way: String, _ a: DispatchQueue, _ b: DispatchQueue) {
    switch way {
    case "sync on its own queue": a.async { a.sync {} }
    case "queues that wait for each other":
        a.async { b.sync { dispatchPrecondition(condition: .onQueue(b)) } }
        b.async { a.sync { dispatchPrecondition(condition: .onQueue(a)) } }
    case "a semaphore": DispatchSemaphore(value: 0).wait()
    case "a group":
        let group = DispatchGroup()
        group.enter()
        group.wait()
    default: DispatchWorkItem {}.wait()
    }
}
