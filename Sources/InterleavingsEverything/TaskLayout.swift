import RuntimeDoors
import TokenServiceConcurrency

/// The location in the runtime's tasks of the functions in which they continue, as words of the task.
///
/// Source: swift/include/swift/ABI/Task.h, `class Job`, `class AsyncTask` and `class AsyncContext`.
struct TaskLayout {
    var function: Int32 = 7
    var context: Int32 = 8

    /// Whether the running program's runtime has this layout, checked once.
    static let isRight = TaskLayout().readsKnownTask()

    /// The functions in which a suspended task continues, the innermost first.
    func functions(of task: UnownedJob) -> [UInt] {
        unsafe [UInt](unsafeUninitializedCapacity: 32) { functions, count in
            // An `UnownedJob` is one pointer to the runtime's task; the memory there is read only if that is possible.
            guard let first = functions.baseAddress, let address = unsafe unsafeBitCast(task, to: UnsafeRawPointer?.self) else {
                return
            }
            count = unsafe Int(doors_functions(address, function, context, first, 32))
        }
    }

    /// Whether a task that waits in a known function, called by another one, is found there.
    func readsKnownTask() -> Bool {
        let executor = Reader(self)
        Task(executorPreference: executor) { await Self.knownCaller(executor) }
        return executor.run().contains { functions in
            let names = functions.map { unsafe doors_caller_name($0 + 1).map { unsafe String(cString: $0) } ?? "" }
            // The innermost function must be the program's: the function itself, or a closure that it passed to the standard
            // library.
            guard names.first?.isEmpty == false, let inner = names.firstIndex(where: { $0.contains("knownWait") }) else {
                return false
            }
            return names[inner...].contains { $0.contains("knownCaller") }
        }
    }

    @inline(never) private static func knownCaller(_ executor: Reader) async {
        await knownWait(executor)
        executor.finish()
    }

    @inline(never) private static func knownWait(_ executor: Reader) async {
        unsafe await withUnsafeContinuation { waiting in Task(executorPreference: executor) { unsafe waiting.resume() } }
        executor.finish()
    }

    /// Reads the functions of each job before it runs.
    private final class Reader: TaskExecutor {
        private let layout: TaskLayout
        private let jobs = Lock<[UnownedJob]>([])

        init(_ layout: TaskLayout) {
            self.layout = layout
        }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            jobs.withLock { $0.append(job) }
        }

        /// Prevents the preceding call from being a tail call.
        func finish() { jobs.withLock { _ = $0 } }

        func run() -> [[UInt]] {
            var found: [[UInt]] = []
            while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
                found.append(layout.functions(of: job))
                unsafe job.runSynchronously(on: asUnownedTaskExecutor())
            }
            return found
        }
    }
}
