#if os(Linux)
import Dispatch
import Foundation
import Interleavings
import Synchronization
import TokenServiceConcurrency

extension Program {
    static let ofThreads = [
        Program("a buffer of two conditions", .queues) { simulation, sum in
            let buffer = ConditionBuffer()
            simulation.spawn("puts") { for number in 1...4 { buffer.put(number) } }
            simulation.spawn("takes") { for _ in 1...2 { sum.add(buffer.take()) } }
            simulation.spawn("takes too") { for _ in 1...2 { sum.add(buffer.take()) } }
            return 10
        },
        Program("a lock that is only tried", .queues) { simulation, sum in
            let lock = NSLock()
            @Sendable func add() -> Bool {
                guard lock.try() else { return false }
                defer { lock.unlock() }
                let before = sum.now
                interleavingPoint("inside")
                sum.with { $0 = before + 1 }
                return true
            }
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    while !add() { await Task.yield() }
                }
            }
            return 2
        },
        Program("a value made once, checked twice", .queues) { simulation, sum in
            let made = Held<Int?>(nil), lock = NSLock()
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    if made.now != nil { return }
                    lock.withLock {
                        guard made.now == nil else { return }
                        sum.add(1)
                        made.with { $0 = 1 }
                    }
                }
            }
            return 1
        },
        Program("locks in one order", .queues) { simulation, sum in
            let locks = [NSLock(), NSLock(), NSLock()]
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    locks[0].withLock { locks[1].withLock { locks[2].withLock { sum.add(1) } } }
                }
            }
            return 3
        },
        Program("continuations resumed outside the lock", .queues) { simulation, sum in
            let waiting = Held<[CheckedContinuation<Void, Never>]>([]), count = Held(0)
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    await withCheckedContinuation { continuation in waiting.with { $0.append(continuation) } }
                    sum.add(1)
                }
            }
            simulation.spawn("wakes") {
                while count.now < 2 {
                    let all = waiting.with { waiting in
                        defer { waiting = [] }
                        return waiting
                    }
                    count.add(all.count)
                    for continuation in all { continuation.resume() }
                    await Task.yield()
                }
            }
            return 2
        },
        Program("readers and a writer on a queue with barriers", .queues) { simulation, sum in
            let queue = DispatchQueue(label: "state", attributes: .concurrent), pair = Held((0, 0))
            simulation.spawn("writes") {
                for number in 1...2 {
                    queue.async(flags: .barrier) {
                        pair.with { $0.0 = number }
                        interleavingPoint("half written")
                        pair.with { $0.1 = number }
                    }
                }
            }
            for name in ["reads", "reads too"] {
                simulation.spawn(name) {
                    queue.sync {
                        let one = pair.now.0
                        interleavingPoint("half read")
                        sum.add(one == pair.now.1 ? 1 : 0)
                    }
                }
            }
            return 2
        },
        Program("a group of callbacks, awaited", .queues) { simulation, sum in
            simulation.spawn("awaits") {
                let group = DispatchGroup(), queue = DispatchQueue(label: "callbacks"), count = Held(0)
                for number in 1...3 {
                    group.enter()
                    queue.asyncAfter(deadline: .now() + .seconds(number)) {
                        count.add(1)
                        group.leave()
                    }
                }
                await withCheckedContinuation { done in group.notify(queue: .global()) { done.resume() } }
                sum.add(count.now)
            }
            return 3
        },
        Program("a group used again", .queues) { simulation, sum in
            simulation.spawn("twice") {
                let group = DispatchGroup(), queue = DispatchQueue(label: "twice", attributes: .concurrent)
                for round in 1...2 {
                    let count = Held(0)
                    for _ in 1...2 { queue.async(group: group) { count.add(1) } }
                    group.wait()
                    sum.add(count.now * round)
                }
            }
            return 6
        },
        Program("two at once on a wide queue, by a semaphore", .queues) { simulation, sum in
            simulation.spawn("limits") {
                let queue = DispatchQueue(label: "wide", attributes: .concurrent), permits = DispatchSemaphore(value: 2)
                let group = DispatchGroup(), inside = Held(0), most = Held(0)
                for _ in 1...4 {
                    queue.async(group: group) {
                        permits.wait()
                        let now = inside.with { inside in
                            inside += 1
                            return inside
                        }
                        most.with { $0 = max($0, now) }
                        interleavingPoint("inside")
                        inside.add(-1)
                        permits.signal()
                    }
                }
                group.wait()
                sum.add(most.now <= 2 ? 1 : 0)
            }
            return 1
        },
        Program("a thread of a queue that waits for a task", .queues) { simulation, sum in
            simulation.spawn("bridges") {
                await withCheckedContinuation { done in
                    DispatchQueue.global().async {
                        let isDone = DispatchSemaphore(value: 0), result = Held(0)
                        Task.detached {
                            await Task.yield()
                            result.add(7)
                            isDone.signal()
                        }
                        isDone.wait()
                        sum.add(result.now)
                        done.resume()
                    }
                }
            }
            return 7
        },
        Program("operations with dependencies", .queues) { simulation, sum in
            simulation.spawn("operates") {
                let queue = OperationQueue(), order = Held<[Int]>([])
                let operations = (1...3).map { number in BlockOperation { order.with { $0.append(number) } } }
                operations[1].addDependency(operations[0])
                operations[2].addDependency(operations[1])
                await withCheckedContinuation { done in
                    operations[2].completionBlock = { done.resume() }
                    for operation in operations.reversed() { queue.addOperation(operation) }
                }
                sum.add(order.now == [1, 2, 3] ? 1 : 0)
            }
            return 1
        },
        Program("an operation queue of one at a time", .queues) { simulation, sum in
            simulation.spawn("operates") {
                let queue = OperationQueue()
                queue.maxConcurrentOperationCount = 1
                for _ in 1...3 {
                    queue.addOperation {
                        let before = sum.now
                        interleavingPoint("inside")
                        sum.with { $0 = before + 1 }
                    }
                }
                await withCheckedContinuation { done in queue.addBarrierBlock { done.resume() } }
            }
            return 3
        },
        Program("a debounce by work items", .queues) { simulation, sum in
            simulation.spawn("types") {
                let queue = DispatchQueue(label: "search")
                var latest: DispatchWorkItem?
                for number in 1...3 {
                    latest?.cancel()
                    let item = DispatchWorkItem { sum.add(number) }
                    queue.asyncAfter(deadline: .now() + 1, execute: item)
                    latest = item
                }
                latest?.wait()
            }
            return 3
        },
        Program("a queue that knows whether it is the current one", .queues) { simulation, sum in
            let queue = DispatchQueue(label: "own"), key = DispatchSpecificKey<Bool>()
            queue.setSpecific(key: key, value: true)
            @Sendable func safely(_ work: () -> Void) {
                if DispatchQueue.getSpecific(key: key) == true { work() } else { queue.sync(execute: work) }
            }
            for name in ["a", "b"] { simulation.spawn(name) { safely { safely { sum.add(1) } } } }
            return 2
        },
        Program("what was sent before a sync runs before it", .queues) { simulation, sum in
            let queue = DispatchQueue(label: "fifo")
            simulation.spawn("sends") {
                let count = Held(0)
                for _ in 1...3 { queue.async { count.add(1) } }
                sum.add(queue.sync { count.now })
            }
            simulation.spawn("disturbs") { queue.async {} }
            return 3
        },
        Program("queues with a common target", .queues) { simulation, sum in
            let target = DispatchQueue(label: "target"), queues = ["a", "b"].map { DispatchQueue(label: $0, target: target) }
            for queue in queues {
                simulation.spawn(queue.label) {
                    queue.async {
                        let before = sum.now
                        interleavingPoint("inside")
                        sum.with { $0 = before + 1 }
                    }
                }
            }
            return 2
        },
        Program("a promise of an event loop, answered on another", .queues) { simulation, sum in
            let (one, other) = (EventLoop("one"), EventLoop("other"))
            simulation.spawn("asks") {
                await withCheckedContinuation { done in
                    one.execute {
                        one.count()
                        other.execute {
                            other.count()
                            one.execute {
                                one.count()
                                sum.add(one.counted)
                                done.resume()
                            }
                        }
                    }
                }
            }
            simulation.spawn("disturbs") { other.execute { other.count() } }
            return 2
        },
        Program("an actor on a queue of its own", .queues) { simulation, sum in
            let keeper = QueuedKeeper()
            for number in 1...3 {
                simulation.spawn("adds \(number)") { await keeper.add(number) }
            }
            simulation.spawn("asks on the queue") { keeper.queue.sync { keeper.assumeIsolated { _ = $0.total } } }
            simulation.spawn("adds itself") {
                await keeper.add(4)
                while await keeper.total < 10 { await Task.yield() }
                sum.add(await keeper.total)
            }
            return 10
        },
        Program("tasks that prefer an executor of the program's own", .queues) { simulation, sum in
            let executor = QueueExecutor()
            for number in 1...3 {
                simulation.spawn("runs \(number)") {
                    await withTaskExecutorPreference(executor) {
                        await Task.yield()
                        sum.add(number)
                    }
                }
            }
            return 6
        },
        Program("a write and a read of a database with two readers", .queues) { simulation, sum in
            let writer = DispatchQueue(label: "writer"), permits = DispatchSemaphore(value: 2), version = Held(0)
            let readers = DispatchQueue(label: "readers", attributes: .concurrent)
            simulation.spawn("writes") { for _ in 1...2 { writer.sync { version.add(1) } } }
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    permits.wait()
                    let snapshot = writer.sync { version.now }
                    sum.add(readers.sync { snapshot <= version.now ? 1 : 0 })
                    permits.signal()
                }
            }
            return 3
        },
        Program("an answer or a limit of time, whichever comes first", .queues) { simulation, sum in
            simulation.spawn("asks") {
                let isOver = Flag(), queue = DispatchQueue(label: "answers")
                await withCheckedContinuation { done in
                    for seconds in [1, 2] {
                        queue.asyncAfter(deadline: .now() + .seconds(seconds)) {
                            if isOver.set() { done.resume() }
                        }
                    }
                }
                sum.add(1)
            }
            return 1
        },
        Program("work for each index at once", .queues) { simulation, sum in
            simulation.spawn("applies") {
                DispatchQueue.concurrentPerform(iterations: 4) { sum.add($0) }
                sum.add(10)
            }
            return 16
        },
        Program("observers told outside the lock", .queues) { simulation, sum in
            let observers = Held<[Int: @Sendable (Int) -> Void]>([:])
            for id in 1...2 { observers.with { $0[id] = { sum.add($0) } } }
            simulation.spawn("posts") { for observer in observers.now.values { observer(5) } }
            simulation.spawn("registers") {
                observers.with { $0[3] = { _ in } }
                observers.with { $0[3] = nil }
            }
            return 10
        },
        Program("a lock for readers and writers", .queues) { simulation, sum in
            let lock = ReadWriteLock(), pair = Held((0, 0))
            for number in 1...2 {
                simulation.spawn("writes \(number)") {
                    lock.writing {
                        pair.with { $0.0 = number }
                        interleavingPoint("half written")
                        pair.with { $0.1 = number }
                    }
                }
                simulation.spawn("reads \(number)") { lock.reading { sum.add(pair.now.0 == pair.now.1 ? 1 : 0) } }
            }
            return 2
        },
    ]
}

private final class ConditionBuffer: Sendable {
    private let (notFull, lock) = (NSCondition(), Held([Int]()))

    func put(_ number: Int) {
        notFull.lock()
        while lock.now.count >= 2 { notFull.wait() }
        lock.with { $0.append(number) }
        notFull.broadcast()
        notFull.unlock()
    }

    func take() -> Int {
        notFull.lock()
        defer { notFull.unlock() }
        while lock.now.isEmpty { notFull.wait() }
        notFull.broadcast()
        return lock.with { $0.removeFirst() }
    }
}

private final class EventLoop: Sendable {
    private let queue: DispatchQueue
    private let count = Held(0)

    init(_ name: String) {
        queue = DispatchQueue(label: name)
    }

    var counted: Int { count.now }

    func count(_ number: Int = 1) {
        dispatchPrecondition(condition: .onQueue(queue))
        count.add(number)
    }

    func execute(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }
}

private actor QueuedKeeper {
    nonisolated var queue: DispatchQueue { executor.queue }
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    private let executor = QueueSerialExecutor()
    private(set) var total = 0

    func add(_ number: Int) {
        dispatchPrecondition(condition: .onQueue(queue))
        total += number
    }
}

private final class QueueSerialExecutor: SerialExecutor {
    let queue = DispatchQueue(label: "keeper")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}

private final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "executor")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

private final class ReadWriteLock: Sendable {
    private let queue = DispatchQueue(label: "lock", attributes: .concurrent)

    func reading(_ work: () -> Void) { queue.sync(execute: work) }
    func writing(_ work: () -> Void) { queue.sync(flags: .barrier, execute: work) }
}
#endif
