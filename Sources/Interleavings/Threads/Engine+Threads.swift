import TokenServiceConcurrency

extension Engine {
    /// Takes a thread that stopped on its way.
    func pause(_ worker: Worker, _ entry: Entry, lock: InterleavedLock.Gate?) {
        state.withLock { state in
            let work = Work.thread(worker)
            let since = state.steps
            state.ready.append(Entry(work: work, lane: entry.lane, task: entry.task, since: since, lock: lock))
        }
    }

    /// A step that does not come back has blocked its thread.
    func block(_ entry: Entry) {
        let name = state.withLock { $0.name(of: entry.task) }
        let problem = ExplorationProblem(.blockedThread, tasks: [name], detail: crew.map { "\($0.stepSeconds)" } ?? "")
        fail(problem, by: name, "blocks its thread")
    }
}
