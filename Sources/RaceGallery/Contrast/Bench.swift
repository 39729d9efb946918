import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// One design in one execution: its service, its network, its callers, and who was answered with what.
final class Bench: Sendable {
    struct Caller {
        let name: String
        /// Those whose calls had returned when this one began: their answers come first.
        let earlier: [Int]
        var hasReturned = false
        var answers: [Result<AccessToken, any Error>] = []
        var hasOvertaken = false
    }

    struct State {
        var service: Contender.Service?
        var callers: [Caller] = []
        /// How many tokens had been issued when the sign-out began.
        var issuedBeforeSignOut = 0
    }

    let simulation: Simulation
    let network: Network
    let state: Lock<State>
    private let crowd: Int

    init(_ contender: Contender, _ trial: Trial, callers: Int, _ simulation: Simulation) {
        self.simulation = simulation
        network = Network(simulation, trouble: trial.trouble)
        crowd = callers
        state = Lock(State(service: contender.make(simulation, network)))
    }

    /// All callers ask, each on a task of its own.
    func everybodyAsks() {
        for number in 1...crowd { ask("caller \(number)") }
    }

    /// Asks on a task of its own, unless the service is gone by then.
    func ask(_ name: String) {
        simulation.spawn(name) { [self] in
            guard let (service, caller) = state.withLock({ $0.begin(name) }) else { return }
            await service.ask { [self] in take($0, for: caller) }
            state.withLock { $0.callers[caller].hasReturned = true }
        }
    }

    private func take(_ answer: Result<AccessToken, any Error>, for caller: Int) {
        let name = state.withLock { state in
            state.take(answer, for: caller)
            return state.callers[caller].name
        }
        simulation.log("\(name) gets \(answer.name)")
    }

    func signOut() {
        simulation.spawn("sign-out") { [self] in
            let issued = network.server.tokensIssued
            let service = state.withLock { state in
                state.issuedBeforeSignOut = issued
                return state.service
            }
            await service?.signOut()
        }
    }

    /// The owner lets go of the service; who is calling it has it a little longer.
    func release() {
        simulation.spawn("owner") { [self] in
            // Let go of outside the lock: the service's end is foreign code.
            let service = state.withLock { state in
                defer { state.service = nil }
                return state.service
            }
            simulation.log("lets the service go")
            withExtendedLifetime(service) {}
        }
    }
}

extension Bench.State {
    fileprivate mutating func begin(_ name: String) -> (Contender.Service, caller: Int)? {
        guard let service else { return nil }
        callers.append(Bench.Caller(name: name, earlier: callers.indices.filter { callers[$0].hasReturned }))
        return (service, callers.count - 1)
    }

    fileprivate mutating func take(_ answer: Result<AccessToken, any Error>, for caller: Int) {
        callers[caller].answers.append(answer)
        if callers[caller].earlier.contains(where: { callers[$0].answers.isEmpty }) { callers[caller].hasOvertaken = true }
    }
}
