import TokenServiceConcurrency

extension Engine {
    /// What the loop does next.
    enum Next {
        case run(Entry)
        /// Tasks that slept or waited go on.
        case resume([Resumption])
        case stop
    }

    /// Runs until all spawned tasks have ended, something failed, or nothing is left to run.
    func run() {
        var finished: Int?
        while true {
            let next = state.withLock { state in
                if let finished { state.lanes[finished].isBusy = false }
                return state.isWindingDown ? state.nextToEnd() : state.next(time: time, stepLimit: stepLimit)
            }
            finished = nil
            switch next {
            case .run(let entry): if perform(entry) { finished = entry.lane }
            // Outside the lock, since resuming enqueues.
            case .resume(let resumptions): for resumption in resumptions { resume(resumption) }
            case .stop: return
            }
        }
    }

    /// - Returns: Whether the work ended; `false` if it stopped on the way.
    private func perform(_ entry: Entry) -> Bool {
        if let threads { return threads.run(entry, of: self) }
        run(entry.work)
        return true
    }

    private func resume(_ resumption: Resumption) {
        switch resumption {
        case .waited(let suspension, let ending): suspension.end(ending)
        case .yield(let job): job.run()
        }
    }

    func run(_ work: Work) {
        switch work {
        case .job(let job): job.run()
        case .block(let block): block()
        case .thread: break
        }
    }
}

extension Engine.State {
    /// Picks the next step; the chooser is asked only where there is more than one candidate.
    mutating func next(time: TimeModel, stepLimit: Int) -> Engine.Next {
        guard failure == nil, escape == nil, unfinished > 0, steps < stepLimit else { return .stop }
        guard resumptions.isEmpty else { return .resume(takeResumptions()) }
        let preempts = findCandidates(time: time)
        if candidates.isEmpty, let waiter = takeIdleWaiter() { return .resume([waiter]) }
        guard !candidateTasks.isEmpty else { return .stop }
        var pick = 0
        if candidateTasks.count > 1 {
            pick = chooser.choose(among: candidateTasks, preempts: preempts)
            choices.append(pick)
        }
        steps += 1
        fingerprint.mix(candidateTasks[pick])
        fingerprint.mix(candidateTasks.count)
        guard pick < candidates.count else { return .resume(advance(pick)) }
        return .run(take(pick))
    }

    private mutating func take(_ pick: Int) -> Engine.Entry {
        let entry = ready.remove(at: candidates[pick])
        lastTask = entry.task
        if lanes[entry.lane].order != .concurrent { lanes[entry.lane].isBusy = true }
        if recorder != nil { record(pick, task: name(of: entry.task), place: lanes[entry.lane].name) }
        return entry
    }

    mutating func record(_ pick: Int, task: String, place: String) {
        let passedOver = pick > 0 ? name(of: candidateTasks[0]) : nil
        recorder?.begin(
            Trace.Step(
                number: steps, task: task, place: place, time: now, candidates: candidateTasks.count, pick: pick,
                passedOver: passedOver))
    }

    /// Picks the next step of the ending: waiting tasks are cancelled, then the oldest runnable work runs.
    mutating func nextToEnd() -> Engine.Next {
        guard steps < endLimit else { return .stop }
        giveUpWaiting()
        guard resumptions.isEmpty else { return .resume(takeResumptions()) }
        lastTask = Self.timeTask
        _ = findCandidates(time: .whenIdle)
        guard !candidates.isEmpty else { return .stop }
        steps += 1
        return .run(take(0))
    }
}
