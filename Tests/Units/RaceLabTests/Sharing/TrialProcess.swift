import Interleavings
import TokenServiceConcurrency

/// A process of the trial, which may be paused or killed: after any wait it continues only when it is running.
final class TrialProcess: Sendable {
    /// The kind and place of a fault in one refresh.
    struct Fault: Sendable {
        enum Place: CaseIterable { case beforeRequest, beforeAnswer, beforeSave }
        enum Kind: Equatable {
            case pause(Duration)
            case kill
        }

        let kind: Kind
        let place: Place
    }

    struct Killed: Error {}

    let number: Int32
    let simulation: Simulation
    private let state = Lock((wakes: VirtualClock.Instant?.none, isDead: false))

    init(number: Int32, simulation: Simulation) {
        self.number = number
        self.simulation = simulation
    }

    var isDead: Bool { state.withLock { $0.isDead } }

    /// Returns when the process is running.
    func resume() async throws {
        while let wakes = state.withLock({ $0.wakes }), simulation.clock.now < wakes, !isDead {
            try await simulation.clock.sleep(until: wakes)
        }
        if isDead { throw Killed() }
    }

    func sleep(_ duration: Duration) async throws {
        try await simulation.clock.sleep(for: duration)
        try await resume()
    }

    /// Reads or writes a store.
    func access() async throws { try await sleep(.milliseconds(2)) }

    /// Pauses or kills the process, if the fault is at this place.
    func meet(_ fault: Fault?, at place: Fault.Place) async throws {
        guard let fault, fault.place == place else { return }
        let now = simulation.clock.now
        state.withLock { state in
            switch fault.kind {
            case .kill: state.isDead = true
            case .pause(let duration): state.wakes = now.advanced(by: duration)
            }
        }
        try await resume()
    }
}

/// The simulation's clock as a process sees it: no wait ends before the process's own pause.
struct ProcessClock: Clock {
    let process: TrialProcess

    var now: VirtualClock.Instant { process.simulation.clock.now }
    var minimumResolution: Duration { process.simulation.clock.minimumResolution }

    func sleep(until deadline: VirtualClock.Instant, tolerance: Duration?) async throws {
        try await process.simulation.clock.sleep(until: deadline)
        // A dead process has no effect: it can't reach the server or the store.
        do { try await process.resume() } catch is TrialProcess.Killed {}
    }
}
