import TokenServiceConcurrency

/// Dispatch queues of code that isn't written for the explorer.
extension Engine {
    package func addQueue(named name: String, isConcurrent: Bool, target: Int?) -> Int {
        addQueue(name, isConcurrent ? .barriers : .fifo, target: target)
    }

    package func enqueue(
        _ block: @escaping @Sendable () -> Void, lane: Int, isBarrier: Bool, after delay: Duration, in session: any DoorSession
    ) {
        let turn = Turn(lane: lane, isBarrier: isBarrier)
        guard delay > .zero else { return enqueue(block: block, turn, in: session) }
        wait(for: delay, Suspension { [self, session] in enqueue(block: block, turn, isTimed: true, in: session) })
    }

    package func inTurn(lane: Int, isBarrier: Bool, _ body: () -> Void) {
        let turn = Turn(lane: lane, isBarrier: isBarrier)
        if let thread = ControlledThread.current {
            // Others may enter the queue first.
            thread.pause()
            if !state.withLock({ $0.phase == .over || $0.lanes.isFree(turn) }) { note("waits for \(name(of: lane))") }
            thread.pause(for: .turn(turn))
        }
        // No other step can run in between. A thread that the engine has given up waits in the real queue.
        let begins = state.withLock { state in
            guard state.phase != .over, state.lanes.isFree(turn) else { return false }
            state.lanes.begin(turn)
            return true
        }
        defer {
            if begins { state.withLock { if $0.phase != .over { $0.lanes.end(turn, byThread: true) } } }
            stop()
        }
        body()
    }

    package func wait(for gate: any Gate, _ duration: Duration?) {
        guard let thread = ControlledThread.current else { return }
        if !gate.isOpen { note("waits for \(gate.title)") }
        let limited = LimitedGate(gate)
        let timer = duration.flatMap { wait(for: $0, Suspension { limited.open() }) }
        thread.pause(for: .gate(limited))
        if let timer { cancelTimer(timer) }
    }

    package var stopsThreads: Bool { threads != nil }

    package var runningTask: Int? { ControlledThread.current?.task }

    package func hasStopped(_ thread: Int32) -> Bool { threads?.haveStopped(oneOf: [thread]) ?? false }

    package var canStop: Bool { ControlledThread.current?.canStop ?? false }

    package func stop() { if stopsAtPoints { ControlledThread.current?.pause() } }

    package func stopForSleepers() { if !state.withLock({ $0.sleepers.isEmpty }) { stop() } }

    package func note(_ text: @autoclosure () -> String) { ControlledThread.current?.note(text()) }

    private func name(of lane: Int) -> String { state.withLock { $0.phase == .over ? "" : "the queue '\($0.lanes[lane].name)'" } }
}

/// A gate that also opens when the time for the wait is over.
private final class LimitedGate: Gate {
    private let gate: any Gate
    private let isLate = Lock(false)

    init(_ gate: any Gate) {
        self.gate = gate
    }

    func open() { isLate.withLock { $0 = true } }

    var title: String { gate.title }
    var holder: Int? { gate.holder }
    var owner: Int32? { gate.owner }
    var isOpen: Bool { isLate.withLock { $0 } || gate.isOpen }
}
