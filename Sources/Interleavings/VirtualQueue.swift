import TokenServiceConcurrency

/// A queue whose blocks run when the schedule picks them.
public struct VirtualQueue: Sendable {
    /// The queue's name in reports.
    package let label: String
    private let engine: Engine
    private let lane: Int

    init(_ engine: Engine, _ label: String, _ order: Engine.Lane.Order) {
        self.engine = engine
        self.label = label
        lane = engine.addQueue(label, order)
    }

    /// Enqueues a block, and returns at once.
    public func async(_ block: @escaping @Sendable () -> Void) {
        engine.expectHome("VirtualQueue.async")
        ControlledThread.current?.pause()
        engine.enqueue(block: block, Engine.Turn(lane: lane))
    }
}
