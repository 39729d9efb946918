import AccessTokensKeys
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@testable import AccessTokens

/// Services whose loaders ask for other keys' tokens; keys with the same first letter share a refresh token.
private final class Cycle: Sendable {
    let stage = Stage(), clock = ManualClock()
    /// Complete when the gate is open.
    private let waiting = Lock<[SingleResult<Void>]>([])
    private let table = Lock<TokenServices<String>?>(nil)

    /// - Parameter asked: The key that a key's loader asks for, once the gate is open.
    init(asked: [String: String]) {
        let services = TokenServices<String>(
            grant: { String($0.prefix(1)) }, environment: .driven(by: stage, clock: clock)
        ) { [weak self] key, _ in
            guard let self else { throw CancellationError() }
            let turn = SingleResult<Void>()
            waiting.withLock { $0.append(turn) }
            try await turn.value()
            if let other = asked[key] { _ = try await self[other].retrieveToken() }
            return AccessToken(key, lifetime: .seconds(3_600))
        }
        table.withLock { $0 = services }
    }

    subscript(key: String) -> TokenService {
        // The table is there until the end of the test.
        table.withLock { $0 }?[key] ?? TokenService { _ in throw CancellationError() }
    }

    func call(_ key: String) -> Stage.Player<AccessToken> {
        stage.start { [service = self[key]] in try await service.retrieveToken() }
    }

    /// Lets all loads go on.
    func open() {
        while true {
            let opened = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            if opened.isEmpty { return }
            for turn in opened { turn.complete(with: .success(())) }
            stage.run()
        }
    }
}

@Suite("Guarantee 17: a load that would wait for the end of its own turn ends at once")
struct GrantCycleTests {
    @Test(
        arguments: [["a1": "a2"], ["a1": "b1", "b1": "a2"], ["a1": "b1", "b1": "c1", "c1": "a2"]],
        [[], ["a2"], ["a2", "a3"]])
    func `a loader that asks for a key of its own grant gets an error at once`(asked: [String: String], waiting: [String]) {
        let cycle = Cycle(asked: asked)
        // Those that wait have their turn after the one that asks.
        let caller = cycle.call("a1"), others = waiting.map(cycle.call)
        cycle.open()
        #expect(caller.firstCause == .loaderWaitsForItself)
        #expect(others.allSatisfy { $0.value != nil })
        #expect(cycle.clock.now.offset == .zero, "at once")
    }

    @Test func `two loaders that ask for a key of each other's grant end at once`() {
        let cycle = Cycle(asked: ["a1": "b2", "b1": "a2"])
        let callers = [cycle.call("a1"), cycle.call("b1")]
        cycle.open()
        #expect(callers.contains { $0.firstCause == .loaderWaitsForItself })
        #expect(callers.allSatisfy { $0.isDone } && cycle.clock.now.offset == .zero)
    }

    @Test func `a loader that asks for a key of another grant waits for its turn, and gets a token`() {
        let cycle = Cycle(asked: ["a1": "b1", "b2": "c1", "c1": "d1"])
        let callers = ["b2", "a1", "b1", "a2", "b3"].map(cycle.call)
        cycle.open()
        #expect(callers.allSatisfy { $0.value != nil })
    }

    @Test func `a load that has lost its turn may ask for a key that has it now`() async {
        let cycle = Cycle(asked: ["a1": "a2"])
        let caller = cycle.call("a1")
        // A sign-in through another key takes the turn from it.
        let signIn = cycle.stage.start { [service = cycle["a3"]] in
            await service.replace(with: AccessToken("a3", lifetime: .seconds(3_600), refreshToken: "r"))
        }
        #expect(signIn.isDone)
        cycle.open()
        #expect(caller.isDone && cycle.clock.now.offset == .zero)
        #expect(caller.firstCause != .loaderWaitsForItself, "\(caller)")
    }

    /// A turn that passes on each time that someone looks.
    private final class Turn: LoadTurn {
        private let loads: Lock<[LoadMembership]>
        init(_ loads: LoadMembership...) { self.loads = Lock(loads) }
        var holder: LoadMembership? { loads.withLock { $0.count > 1 ? $0.removeFirst() : $0.first } }
    }

    @Test func `a load whose turn has come meanwhile, or is held by an earlier load of its service, closes no cycle`() {
        let service = TokenService { _ in AccessToken("a") }, other = TokenService { _ in AccessToken("b") }
        let load = LoadMembership(of: service, work: 2), earlier = LoadMembership(of: service, work: 1)
        var waits = LoadWaits()
        for turn in [Turn(), Turn(load), Turn(earlier), Turn(earlier, load)] {
            #expect(!waits.closesCycle(load, waitingFor: .turn(turn)))
        }
        let turn = Turn(earlier)
        let begun = [
            waits.begin(earlier, waitingFor: .service(ObjectIdentifier(other))),
            waits.begin(load, waitingFor: .turn(turn)),
            waits.begin(LoadMembership(of: other, work: 1), waitingFor: .service(ObjectIdentifier(service))),
        ]
        #expect(begun == [true, true, false])
        earlier.end()
        let begins = waits.begin(LoadMembership(of: other, work: 1), waitingFor: .service(ObjectIdentifier(service)))
        #expect(begins)
    }
}
