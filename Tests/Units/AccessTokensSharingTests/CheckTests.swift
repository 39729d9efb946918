import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("When a hit looks at a shared record")
struct CheckTests {
    private typealias Machine = TokenService.StateMachine

    private func machine(checkEvery interval: Duration? = .seconds(10)) -> Machine {
        var machine = Machine(
            policy: RefreshPolicy(), isRepeatable: false, keptIn: .record(checkEvery: interval), seed: 1)
        _ = machine.retrieve(seen: 0, at: .zero)
        machine.ended(.token(.granted("first"), age: .zero, isAdopted: false), by: 1, at: .zero)
        _ = machine.conclude()
        return machine
    }

    private func started(_ machine: inout Machine, at now: Duration) -> [Machine.Flight] {
        machine.refreshAhead(at: now)
        return machine.conclude().start != nil ? [machine.state.flight].compactMap { $0 } : []
    }

    @Test func `the next look is due an interval after the last one has ended, also if it found nothing`() {
        var machine = machine()
        #expect(machine.snapshot.hit.nothingDueUntil == .seconds(10))
        #expect(started(&machine, at: .milliseconds(9_999)).isEmpty)
        let flights = started(&machine, at: .seconds(10))
        #expect(flights.map(\.isCheck) == [true])
        #expect(machine.snapshot.token(at: .seconds(10)) != nil)
        #expect(machine.snapshot.refreshFrom == .forever, "one at a time")
        #expect(started(&machine, at: .seconds(11)).isEmpty)
        let refresh = machine.state.cached?.refreshFrom
        machine.ended(.gaveUp, by: flights[0].id, at: .seconds(12))
        #expect(machine.snapshot.hit.nothingDueUntil == .seconds(22))
        #expect(machine.state.cached?.refreshFrom == refresh)
    }

    @Test func `a refresh in the soft window takes the place of a look`() {
        var machine = machine()
        #expect(started(&machine, at: .seconds(2_800)).map(\.isCheck) == [false])
    }

    @Test func `a refusal during a look counts as the cause of the load that follows`() {
        var machine = machine()
        let look = started(&machine, at: .seconds(10))
        machine.invalidate(.granted("first"), at: .seconds(10))
        #expect(machine.rejections.causeNextLoad)
        machine.callersJoined(1, isAwaited: true)
        machine.ended(.gaveUp, by: look[0].id, at: .seconds(11))
        #expect(machine.rejections.loads == [.seconds(11)])
    }

    @Test func `without an interval no look is due before the soft window`() {
        let machine = machine(checkEvery: nil)
        #expect(machine.snapshot.hit.nothingDueUntil == machine.state.cached?.refreshFrom)
    }

    @Test(arguments: [Duration.seconds(-5), .zero, .milliseconds(999), .seconds(1), .seconds(Int64.max)])
    func `a check interval is at least a second, and overflows nothing`(interval: Duration) {
        let sharing = TokenSharing(checkEvery: interval)
        let expected = min(max(interval, .seconds(1)), RefreshPolicy.longestLifetime)
        #expect(sharing.checkEvery == expected)
        #expect(machine(checkEvery: sharing.checkEvery).snapshot.token(at: .zero) != nil)
    }
}
