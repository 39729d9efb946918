import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("Guarantee 19 with a shared grant: each event of a load's start is followed by one of its end")
struct SharedEventTests {
    private typealias Machine = TokenService.StateMachine

    private func told(_ machine: inout Machine) -> [String] {
        machine.conclude().effects.compactMap { effect in
            guard case .announce(let event) = effect else { return nil }
            return "\(event.name) \(event.load ?? 0)"
        }
    }

    private func machine() -> Machine {
        var machine = Machine(policy: RefreshPolicy(), isRepeatable: false, keptIn: .record(checkEvery: nil), seed: 1)
        machine.callersJoined(0, isAwaited: true)
        _ = machine.retrieve(seen: 0, at: .zero)
        return machine
    }

    @Test func `19: a load that spends nothing, since no caller waits, ends with the event loadDropped`() {
        var machine = machine()
        machine.callersJoined(0, isAwaited: false)
        machine.ended(.gaveUp, by: 1, at: .seconds(1))
        #expect(told(&machine) == ["loadStarted 1", "loadDropped 1"])
    }

    @Test func `19: a load in whose place another one begins ends with the event loadDropped`() {
        var machine = machine()
        machine.callersJoined(0, isAwaited: true)
        machine.ended(.newGrant, by: 1, at: .seconds(1))
        #expect(told(&machine) == ["loadStarted 1", "loadDropped 1", "loadStarted 2"])
    }

    @Test func `19: a refresh ahead that gives way to another service's ends with the event loadDropped`() {
        var machine = machine()
        machine.ended(.token(.granted("a"), age: .zero, isAdopted: true), by: 1, at: .zero)
        #expect(told(&machine) == ["loadStarted 1", "restored 1"])
        machine.refreshAhead(at: .seconds(2_900))
        machine.ended(.gaveUp, by: 2, at: .seconds(2_901))
        #expect(told(&machine) == ["refreshStarted 2", "loadDropped 2"])
    }

    @Test func `19: a load whose store fails ends with the event loadFailed`() {
        var machine = machine()
        machine.ended(.failed(FlightFailure(error: .storeIsLate)), by: 1, at: .seconds(1))
        #expect(told(&machine) == ["loadStarted 1", "loadFailed 1"])
    }
}
