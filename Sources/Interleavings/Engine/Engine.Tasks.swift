extension Engine {
    /// A task that was spawned.
    struct Spawned: Sendable {
        let name: String
        /// Where it was spawned.
        let place: String
        /// The simulated process that it belongs to; `nil`: none.
        let process: Int?
        /// The runtime's task, once it has begun.
        var identity: TaskIdentity?
        /// The same as a job, which is alive until the task ends.
        var job: UnownedJob?
        /// Whether it has ended, or was killed.
        var hasEnded = false
        /// Whether this task waited for something unknown when the engine reported that nothing could run.
        var isDoubted = false
        var cancel: (@Sendable () -> Void)?
        /// Whether something asked for its result.
        var isRead = false
        /// The error that it threw, unless it was read, or is the error of the task's own cancellation.
        var unreadError: (any Error)?
    }

    /// Whether the scenario checked a requirement, and ended, before any task that it spawned had begun.
    enum Haste: Sendable {
        /// No task has begun, and no requirement was checked since they were spawned.
        case possible
        /// The scenario checked a requirement before a task had begun.
        case required
        /// It also ended before one began.
        case ended
        /// One has begun before that.
        case ruledOut
    }

    /// The tasks that one execution has seen, each with a number and a name, and those of them that were spawned.
    struct Tasks: Sendable {
        /// The numbers of the runtime's tasks.
        private var numbers: [UInt32: Int] = [:]
        /// By number; an empty name: the task has none.
        private var names: [String] = []
        private var processes: [Int: Int] = [:]
        /// The spawned task that the next task seen for the first time represents; `nil`: none.
        private var announcement: Int?
        /// The scenario's own task: the runtime's number and the engine's.
        private(set) var root: (identity: UInt32, number: Int)?
        /// The spawned tasks in order, and how many of them have not ended.
        private(set) var spawned: [Spawned] = []
        private(set) var unfinished = 0
        private(set) var haste = Haste.possible

        mutating func add(named name: String) -> Int {
            names.append(name)
            return names.count - 1
        }

        func name(of task: Int) -> String {
            guard names.indices.contains(task), !names[task].isEmpty else { return "task \(task)" }
            return names[task]
        }

        func number(of identity: UInt32) -> Int? { numbers[identity] }

        func process(of task: Int) -> Int? { processes[task] }

        var announced: Spawned? { announcement.map { spawned[$0] } }

        /// Notes which task of the runtime a number stands for; 0: the jobs of actors.
        mutating func identify(_ task: Int, as identity: UInt32, in process: Int?) {
            numbers[identity] = task
            if announcement == 0 { root = (identity, task) }
            guard identity != 0 else { return }
            processes[task] = process
            announcement = nil
        }

        /// Announces a task: the runtime's number of a task is known only from its first job.
        ///
        /// - Returns: Its number in the order of spawning.
        mutating func announce(_ task: Spawned) -> Int {
            announcement = spawned.count
            spawned.append(task)
            unfinished += 1
            return spawned.count - 1
        }

        mutating func set(cancel: @escaping @Sendable () -> Void, of number: Int) { spawned[number].cancel = cancel }

        mutating func begin(_ number: Int, as identity: TaskIdentity?, _ job: UnownedJob?) {
            (spawned[number].identity, spawned[number].job) = (identity, job)
            if number > 0, haste != .ended { haste = .ruledOut }
        }

        /// - Parameter error: The error that fails the execution if nothing reads it.
        mutating func end(_ number: Int, throwing error: (any Error)?) {
            guard !spawned[number].hasEnded else { return }
            forget(number)
            (spawned[number].cancel, spawned[number].job) = (nil, nil)
            if number == 0, haste == .required { haste = .ended }
            if !spawned[number].isRead { spawned[number].unreadError = error }
        }

        /// Stops waiting for a spawned task.
        mutating func forget(_ number: Int) {
            guard !spawned[number].hasEnded else { return }
            spawned[number].hasEnded = true
            unfinished -= 1
        }

        mutating func read(_ number: Int) {
            spawned[number].isRead = true
            // This doesn't free the error here, since the task retains it as well.
            spawned[number].unreadError = nil
        }

        mutating func doubt(_ number: Int, _ isDoubted: Bool) { spawned[number].isDoubted = isDoubted }

        mutating func noteRequirement() {
            if spawned.count > 1, haste == .possible { haste = .required }
        }

        /// The names of the spawned tasks that have not ended, in order.
        var waiting: [String] { spawned.filter { !$0.hasEnded }.map(\.name) }

        /// Those whose waker is unknown, although the engine reported that nothing could run.
        var doubted: [String] { spawned.filter { $0.isDoubted && !$0.hasEnded }.map(\.name) }
    }
}
