import TokenServiceConcurrency

extension Engine {
    /// The loop's next action.
    enum Next {
        case run(Entry)
        /// Resume tasks that slept or waited.
        case resume([Resumption])
        /// Wait until a thread whose step sleeps in the kernel returns.
        case awaitSleeper
        /// Let a debugger stop the process, with this text; then the loop continues.
        case breakpoint(String)
        case stop
    }

    /// Runs until all spawned tasks have ended, something has failed, or nothing is left to run.
    func run() {
        var finished: Turn?
        while true {
            if threads != nil { takeBackSleepers() }
            let (next, doors) = state.withLock { state in
                if let finished { state.lanes.end(finished) }
                let next = state.phase != .running ? state.nextToEnd() : state.next(time: time, stepLimit: stepLimit)
                return (next, state.doors())
            }
            finished = nil
            switch consume next {
            case .run(let entry): if perform(entry, doors) { finished = entry.turn }
            // Outside the lock, since resuming enqueues.
            case .resume(let resumptions): doors.step { for resumption in resumptions { resume(resumption) } }
            case .awaitSleeper: awaitSleeper()
            case .breakpoint(let text): Debugger.stop(text)
            case .stop: return
            }
        }
    }

    /// - Returns: Whether the work ended; `false` if it stopped on the way.
    private func perform(_ entry: Entry, _ doors: StepDoors) -> Bool {
        if let threads { return threads.run(entry, of: self) }
        doors.step { run(entry.work) }
        return true
    }

    private func resume(_ resumption: Resumption) {
        // Jobs that the resumption enqueues belong to its process.
        if let process = resumption.process { state.withLock { $0.process = process } }
        defer { if resumption.process != nil { state.withLock { $0.process = nil } } }
        switch resumption {
        case .waited(let suspension, let ending): suspension.end(ending)
        case .yield(let job, _): job.run()
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
    /// Picks the next step; uses the chooser only if there is more than one candidate.
    mutating func next(time: TimeModel, stepLimit: Int) -> Engine.Next {
        (isInStep, process) = (false, nil)
        guard failure == nil, escape == nil, tasks.unfinished > 0, !choices.hasReached(stepLimit) else { return .stop }
        guard resumptions.isEmpty else { return .resume(takeResumptions()) }
        let offer = findCandidates(time: time, stepLimit: stepLimit)
        // Nothing can run, or only time can move.
        let isIdle = candidates.allSatisfy { $0 == Self.timeIndex }
        if isIdle, !sleepers.isEmpty { return .awaitSleeper }
        if isIdle { doubtWaitingTasks() }
        if isIdle, let waiter = takeIdleWaiter() { return .resume([waiter]) }
        guard !candidates.isEmpty else { return .stop }
        if stop == steps + 1 { return stopHere() }
        let pick = pick(offer, stepLimit: stepLimit)
        choices.begin(candidateTasks[pick], among: candidateTasks.count)
        guard candidates[pick] != Self.timeIndex else { return .resume(advance(pick)) }
        return .run(take(pick))
    }

    /// Uses the chooser; at the step limit, a schedule that keeps passing over a task is made fair.
    private mutating func pick(_ offer: Offer, stepLimit: Int) -> Int {
        guard steps < stepLimit else {
            choices.omit(.starvation)
            return 0
        }
        // From the hold on, the recorded choices don't fit.
        guard candidates.count > 1, hold.map({ steps + 1 < $0.from }) ?? true else { return 0 }
        return choices.pick(among: candidateTasks, offer)
    }

    private mutating func take(_ pick: Int) -> Engine.Entry {
        let entry = lanes.take(candidates[pick])
        lastTask = entry.task
        (isInStep, process) = (true, entry.process)
        // A stopped thread already has its turn, and takes a further one itself.
        if !entry.isThread { lanes.begin(entry.turn) }
        if recorder != nil {
            record(pick, task: name(of: entry.task), lane: entry.lane)
            if lanes.ordering == .any { noteOvertaking(by: entry) }
        }
        if let session, case .job(let job) = entry.work, let task = job.task {
            recorder?.note(functions: session.functions(of: task))
        }
        return entry
    }

    private mutating func noteOvertaking(by entry: Engine.Entry) {
        guard let priority = entry.priority, lanes[entry.lane].order == .serial else { return }
        let earlier = lanes.ready.first {
            $0.lane == entry.lane && $0.priority == priority && !$0.isHop && $0.arrival < entry.arrival
        }
        guard let earlier else { return }
        let (task, other) = (name(of: entry.task), name(of: earlier.task))
        recorder?.noteOvertaking(task, of: other, on: lanes[entry.lane].name, at: choices.steps)
    }

    /// - Parameter lane: Where it runs; `nil`: time moves on.
    mutating func record(_ pick: Int, task: String, lane: Int?) {
        let passedOver = pick > 0 ? name(of: candidateTasks[0]) : nil
        let place = lane.map { lanes[$0].name } ?? ""
        let candidates = candidateTasks.map { $0 == Self.timeTask ? "" : name(of: $0) }
        recorder?.begin(
            Trace.Step(
                number: choices.steps, task: task, place: place, time: clock.now,
                candidates: candidates, pick: pick, passedOver: passedOver),
            lane: lane ?? Self.timeTask)
    }

    /// The threads that have stopped inside a step.
    var stoppedThreads: [Engine.Entry] { lanes.ready.filter(\.isThread) }

    /// Picks the next step while the execution is winding down: waits that can throw end, then the oldest runnable work runs.
    mutating func nextToEnd() -> Engine.Next {
        guard steps < endLimit else { return .stop }
        giveUpWaiting()
        guard resumptions.isEmpty else { return .resume(takeResumptions()) }
        lastTask = Self.timeTask
        _ = findCandidates(time: .whenIdle, stepLimit: .max)
        guard !candidates.isEmpty else {
            // A step that sleeps beside threads that stay stopped probably waits for what one of them holds.
            return sleepers.isEmpty || !stoppedThreads.isEmpty ? .stop : .awaitSleeper
        }
        choices.beginLate()
        return .run(take(0))
    }
}
