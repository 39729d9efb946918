import AccessTokens
import AccessTokensTesting
import TokenServiceConcurrency

extension Trial {
    /// One design in one run of a trial: its service, its network, its callers and their answers.
    package final class Run: Sendable {
        struct Caller: Sendable {
            let name: String
            /// How many calls had returned when this one began: their answers must come first.
            let earlier: Int
            var answers: [Result<AccessToken, any Error>] = []
            /// How many answers there had been before its first one.
            var place: Int?
        }

        struct State: Sendable {
            var service: Design.Service?
            var callers: [Caller] = []
            /// The callers whose calls have returned, in that order.
            var returned: [Int] = []
            /// The caller of each answer, in order.
            var answered: [Int] = []
            /// How many tokens had been issued when the sign-out began.
            var issuedBeforeSignOut = 0
        }

        let surroundings: any Surroundings
        let network: Network
        private let state: Lock<State>
        private let crowd: Int
        private let latecomers: Int

        init(
            _ design: Design, in surroundings: any Surroundings, tokenLifetime: Duration = .seconds(3600),
            trouble: Network.Trouble = .none, callers: Int, latecomers: Int = 1
        ) {
            self.surroundings = surroundings
            network = Network(surroundings, tokenLifetime: tokenLifetime, trouble: trouble)
            crowd = callers
            self.latecomers = latecomers
            state = Lock(State(service: design.make(surroundings, network)))
        }

        /// The record of the run so far.
        var record: State { state.withLock { $0 } }

        /// All callers ask, each on a task of its own.
        func askAll() {
            for number in 0..<crowd { ask("caller \(number + 1)") }
        }

        /// The latecomers ask.
        func askLate() {
            for number in 0..<latecomers { ask(latecomers == 1 ? "later caller" : "later caller \(number + 1)") }
        }

        /// Asks in a new task, unless the service has been released by then.
        func ask(_ name: String) {
            surroundings.spawn(name) { [self] in await askInTask(name) }
        }

        private func askInTask(_ name: String) async {
            guard let (service, caller) = state.withLock({ $0.begin(name) }) else { return }
            await service.ask { [self] in take($0, for: caller) }
            state.withLock { $0.returned.append(caller) }
        }

        private func take(_ answer: Result<AccessToken, any Error>, for caller: Int) {
            let name = state.withLock { state in
                state.take(answer, for: caller)
                return state.callers[caller].name
            }
            surroundings.log("\(name) gets \(answer.name)")
        }

        /// The user signs out, and the next line asks.
        func signOut() {
            surroundings.spawn("sign-out") { [self] in
                let issued = network.server.tokensIssued
                let service = state.withLock { state in
                    state.issuedBeforeSignOut = issued
                    return state.service
                }
                await service?.signOut()
                await askInTask("next caller")
            }
        }

        /// The owner releases the service; a caller in the middle of a call retains it a little longer.
        func release() {
            surroundings.spawn("owner") { [self] in
                // Release the service outside the lock: its deinit is foreign code.
                let service = state.withLock { state in
                    defer { state.service = nil }
                    return state.service
                }
                surroundings.log("lets the service go")
                withExtendedLifetime(service) {}
            }
        }
    }
}

extension Trial.Run.State {
    fileprivate mutating func begin(_ name: String) -> (Design.Service, caller: Int)? {
        guard let service else { return nil }
        callers.append(Trial.Run.Caller(name: name, earlier: returned.count))
        return (service, callers.count - 1)
    }

    fileprivate mutating func take(_ answer: Result<AccessToken, any Error>, for caller: Int) {
        callers[caller].answers.append(answer)
        callers[caller].place = callers[caller].place ?? answered.count
        answered.append(caller)
    }
}
