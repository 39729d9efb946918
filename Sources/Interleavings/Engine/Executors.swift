/// The pool: any number of tasks at once, in any order.
final class PoolExecutor: TaskExecutor {
    private let engine: Engine
    private let lane: Int

    init(_ engine: Engine) {
        self.engine = engine
        lane = engine.addLane("pool", .concurrent)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        engine.enqueue(Job(job, on: self), lane: lane)
    }
}

/// An actor's executor: one job at a time.
final class LaneExecutor: SerialExecutor {
    private let engine: Engine
    private let lane: Int

    init(_ engine: Engine, _ name: String, _ order: Engine.Lane.Order) {
        self.engine = engine
        lane = engine.addLane(name, order)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        engine.enqueue(Job(job, on: self), lane: lane)
    }
}
