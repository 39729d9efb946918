import Interleavings
import RuntimeDoors
import TokenServiceConcurrency

/// The doors of one execution, with the executor of its pool and the lanes of its actors.
///
/// Each task keeps the pool's executor, which keeps the session, so that anything a task of the execution does, however late,
/// finds it.
///
/// `@unchecked` because of the C struct and the weak reference. `init` writes both, and only the struct's time changes later,
/// atomically.
@safe final class DrivenSession: DoorSession, @unchecked Sendable {
    let engine: any DrivenEngine
    private let lanes = Lock<[ActorReference: Int]>([:])
    /// Its queues.
    let queues = DrivenQueues()
    /// Its plain locks.
    let locks = DrivenLocks()
    private let session: UnsafeMutablePointer<doors_session>
    private weak var pool: (any TaskExecutor)?

    private init(_ doors: Doors, _ engine: any DrivenEngine) {
        self.engine = engine
        unsafe session = .allocate(capacity: 1)
        unsafe session.initialize(to: doors_session())
        unsafe session.pointee.open = doors.rawValue
        unsafe session.pointee.owner = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        ActorExecutor.forget(Array(lanes.withLock { $0 }.keys), of: ObjectIdentifier(self))
        unsafe session.deallocate()
    }

    /// Opens doors for one execution, and makes the executor of its tasks.
    static func open(_ doors: Doors, for engine: any DrivenEngine) -> (any TaskExecutor, any DoorSession) {
        // On a thread that can't stop, a lock has no point.
        let session = DrivenSession(engine.stopsThreads ? doors : doors.subtracting(.locks), engine)
        let lane = engine.addPool()
        let pool = Pool(session, lane: lane)
        session.pool = pool
        unsafe session.session.pointee.pool = executorWords(pool)
        if doors.contains(.main) { unsafe session.session.pointee.main = ActorExecutor.words(for: MainActor.shared) }
        return (pool, session)
    }

    func step(at now: Duration, _ body: () -> Void) {
        // Retained for the step, whose new tasks get this executor. Without tasks there is no executor, and nothing to drive.
        guard let pool else { return body() }
        unsafe doors_set_now(session, Self.nanoseconds(now))
        let before = unsafe doors_enter(session)
        defer { _ = unsafe doors_enter(before) }
        withExtendedLifetime(pool, body)
    }

    func callSite() -> (@Sendable () -> String?)? { CallSite.capture() }

    var remedy: String? {
        guard doors.contains(.leaving) else { return nil }
        return doors.contains(.blocks)
            ? "Tasks, actors, sleeps and queues are driven here; threads, sources, timers and networks aren't. Give the code stubs."
            : "Tasks, actors and sleeps are driven here; threads, queues, timers and networks aren't. Give the code stubs of them, "
                + "or drive the queues, too: '.everythingAndQueues'."
    }

    private var doors: Doors { unsafe Doors(rawValue: session.pointee.open) }

    func away<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        let before = unsafe doors_enter(nil)
        defer { _ = unsafe doors_enter(before) }
        return try body()
    }

    /// Runs a function of the code in a queue, with the doors open; see `doors_perform`.
    func perform(
        in queue: UnsafeMutableRawPointer, isBarrier: Bool, _ function: @convention(c) (UnsafeMutableRawPointer?) -> Void,
        _ context: UnsafeMutableRawPointer?
    ) {
        // As in a step, without tasks there is nothing to drive.
        let pool = pool
        unsafe doors_perform(pool == nil ? nil : session, queue, isBarrier, function, context)
        withExtendedLifetime(pool) {}
    }

    /// The clocks overflow after some 290 years.
    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflows ? .max - 999_999_999 : whole + attoseconds / 1_000_000_000
    }

    /// The doors that are open on this thread.
    static var current: DrivenSession? {
        unsafe doors_current()?.pointee.owner.map { unsafe at($0) }
    }

    static func at(_ owner: UnsafeMutableRawPointer) -> DrivenSession {
        unsafe Unmanaged<DrivenSession>.fromOpaque(owner).takeUnretainedValue()
    }

    func functions(of task: UnownedJob) -> [UInt] { TaskLayout().functions(of: task) }

    func whereabouts(of task: UnownedJob) -> String? {
        guard TaskLayout.isRight else { return nil }
        return functions(of: task).lazy.compactMap { address in
            CallSite.name(of: address + 1).map { name in "\(name)\(CodeLine.find(address).map { " at \($0)" } ?? "")" }
        }.first
    }

    /// Returns the lane of an actor.
    func lane(of actor: AnyObject) -> Int {
        let reference = ActorReference(actor)
        return lanes.withLock { lanes in
            if let known = lanes[reference] { return known }
            let lane = engine.addActor(named: String(describing: type(of: actor)), inOrder: actor === MainActor.shared)
            lanes[reference] = lane
            ActorExecutor.remember(reference, in: self)
            return lane
        }
    }
}

/// An executor as the runtime passes it.
func executorWords(_ executor: any TaskExecutor) -> doors_executor {
    // Unchanged: passed to a generic function, an existential would be opened.
    unsafe unsafeBitCast(executor as any TaskExecutor, to: doors_executor.self)
}

/// The pool of an execution.
final class Pool: TaskExecutor {
    private let session: DrivenSession
    private let lane: Int

    init(_ session: DrivenSession, lane: Int) {
        self.session = session
        self.lane = lane
    }

    func enqueue(_ job: consuming ExecutorJob) {
        session.engine.enqueue(job, lane: lane, on: self, in: session)
    }
}
