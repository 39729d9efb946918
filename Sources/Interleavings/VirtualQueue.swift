import TokenServiceConcurrency

/// A queue whose blocks run when the schedule says so.
public struct VirtualQueue: Sendable {
    /// The queue's name in reports.
    public let label: String
    private let engine: Engine
    private let lane: Int
    /// The task of a serial queue, which is like one task; `nil`: each block is a task of its own, with the queue's name.
    private let task: Int?

    init(_ engine: Engine, _ label: String, _ order: Engine.Lane.Order) {
        self.engine = engine
        self.label = label
        lane = engine.addLane(label, order)
        task = order == .fifo ? engine.state.withLock { $0.newTask(named: label) } : nil
    }

    /// Enqueues a block, and returns at once.
    public func async(_ block: @escaping @Sendable () -> Void) {
        engine.enqueue(block: block, lane: lane, task: task, name: label)
    }
}
