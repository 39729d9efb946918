import Dispatch
import Interleavings
import RuntimeDoors
import Synchronization

extension DoorCheck {
    /// The symptoms of a missing hook for queues, in the order of the trials.
    ///
    /// If a hook is missing, none of them waits endlessly or uses the main queue's own thread.
    static let trialsOfQueues: [(sign: String, Trial)] = [
        (
            "a queue's block isn't driven",
            { simulation in
                let place = await withCheckedContinuation { waiting in
                    DispatchQueue(label: "check").asyncAfter(deadline: .now() + 1) {
                        waiting.resume(returning: unsafe String(cString: doors_current_label()))
                    }
                }
                try simulation.require(place == "check", "it ran in '\(place)'")
                try simulation.require(simulation.clock.now.offset == .seconds(1), "it ran at \(simulation.clock.now)")
            }
        ),
        (
            "sync isn't driven",
            { simulation in
                let queue = DispatchQueue(label: "check")
                let isFirst = Atomic(false)
                queue.async { isFirst.store(true, ordering: .relaxed) }
                try simulation.require(queue.sync { isFirst.load(ordering: .relaxed) }, "it overtook a block")
            }
        ),
        (
            "a group isn't driven",
            { simulation in
                let group = DispatchGroup()
                let isInStep = Atomic(false)
                DispatchQueue.global().async(group: group) {
                    isInStep.store(DrivenSession.current != nil, ordering: .relaxed)
                }
                try simulation.require(group.wait(timeout: .now() + .milliseconds(50)) == .success, "a block didn't leave it")
                try simulation.require(isInStep.load(ordering: .relaxed), "its block ran elsewhere")
            }
        ),
        (
            "a semaphore isn't driven",
            { simulation in
                let semaphore = DispatchSemaphore(value: 0)
                DispatchQueue.global().async { semaphore.signal() }
                let result = semaphore.wait(timeout: .now() + .milliseconds(50))
                try simulation.require(result == .success, "a signal didn't come")
            }
        ),
        (
            "a work item isn't driven",
            { simulation in
                let item = DispatchWorkItem {}
                DispatchQueue.global().async(execute: item)
                let result = item.wait(timeout: .now() + .milliseconds(50))
                try simulation.require(result == .success, "it didn't end")
            }
        ),
        (
            "a target queue isn't first in, first out",
            { simulation in
                let target = DispatchQueue(label: "check"), order = Mutex([Int]())
                let queues = [target, DispatchQueue(label: "check of a target", target: target)]
                // A queue without order would run them in this order in one of 40,000 schedules.
                for number in 0..<8 { queues[number % 2].async { order.withLock { $0.append(number) } } }
                queues[0].sync {}
                let found = order.withLock { $0 }
                // The queue has one place in its target, that of its first block.
                try simulation.require(found == [0, 1, 3, 5, 7, 2, 4, 6], "\(found)")
            }
        ),
        (
            "the main queue isn't driven",
            { simulation in
                let label = await withCheckedContinuation { waiting in
                    DispatchQueue.main.async { waiting.resume(returning: unsafe String(cString: doors_current_label())) }
                }
                try simulation.require(label == DispatchQueue.main.label, "its label is '\(label)'")
            }
        ),
    ]
}
