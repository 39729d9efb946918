import Interleavings
import RuntimeDoors

/// A block or a function that waits to run once.
///
/// `@unchecked`: the engine runs it once, or releases it.
@safe final class QueuedWork: @unchecked Sendable {
    private let work: OpaquePointer
    private var isUsed = false

    init(_ work: OpaquePointer) {
        unsafe self.work = work
    }

    deinit {
        if !isUsed { unsafe doors_work_drop(work) }
    }

    var item: UnsafeMutableRawPointer? { unsafe doors_work_item(work) }

    func run(in queue: DrivenQueues.Object, isBarrier: Bool) {
        isUsed = true
        unsafe doors_work_run(work, queue.pointer, isBarrier)
    }
}

/// Opens when a semaphore can be passed, a group is empty or a work item has ended.
final class ObjectGate: Gate {
    let title: String
    private let queues: DrivenQueues
    private let kind: doors_wait
    private let object: DrivenQueues.Object

    init(_ queues: DrivenQueues, _ kind: doors_wait, _ object: DrivenQueues.Object, _ title: String) {
        self.queues = queues
        self.kind = kind
        self.object = object
        self.title = title
    }

    var isOpen: Bool { queues.isOver(kind, object) }
}
