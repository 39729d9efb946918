extension Engine {
    /// A sleeping task.
    struct Timer: Sendable {
        let id: Int
        let deadline: Duration
        let suspension: Suspension
        /// The runtime's number of a task that sleeps in the runtime's own way; 0: it sleeps by the simulation's clock.
        var sleeper: UInt32 = 0
    }

    /// The virtual time of one execution, and the timers that wait for it.
    struct Clock: Sendable {
        private(set) var now = Duration.zero
        private(set) var timers: [Timer] = []
        /// The step in which the timers began to wait for the present deadline.
        private(set) var since = 0
        private var timerCount = 0

        init(now: Duration = .zero) {
            self.now = now
        }

        mutating func newTimer() -> Int {
            timerCount += 1
            return timerCount
        }

        mutating func add(_ timer: Timer, at step: Int) {
            if timers.isEmpty { since = step }
            timers.append(timer)
        }

        mutating func remove(_ id: Int) -> Suspension? {
            timers.firstIndex { $0.id == id }.map { timers.remove(at: $0).suspension }
        }

        mutating func remove(sleeper: UInt32) -> Suspension? {
            timers.firstIndex { $0.sleeper == sleeper }.map { timers.remove(at: $0).suspension }
        }

        /// Moves time to the earliest deadline of a process that runs.
        ///
        /// - Returns: The timers that are due.
        mutating func advance(at step: Int, without frozen: [Int]) -> [Timer] {
            let running = timers.filter { !frozen.contains($0) }
            now = running.reduce(running[0].deadline) { min($0, $1.deadline) }
            since = step
            timers.removeAll { $0.deadline <= now && !frozen.contains($0) }
            return running.filter { $0.deadline <= now }
        }

        /// Takes the timers of a process that became due while it was frozen.
        mutating func takeDue(of process: Int) -> [Timer] {
            let due = timers.filter { $0.suspension.process == process && $0.deadline <= now }
            timers.removeAll { $0.suspension.process == process && $0.deadline <= now }
            return due
        }

        /// Takes those that end with an error when the execution is over.
        mutating func takeThrowing() -> [Timer] {
            defer { timers.removeAll { $0.suspension.canThrow } }
            return timers.filter(\.suspension.canThrow)
        }
    }
}

extension [Int] {
    fileprivate func contains(_ timer: Engine.Timer) -> Bool { timer.suspension.process.map(contains) ?? false }
}
