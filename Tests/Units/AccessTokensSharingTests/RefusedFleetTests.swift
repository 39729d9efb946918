import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("Services that share one grant, and are refused")
struct RefusedFleetTests {
    /// Services whose token has expired.
    private func fleet(_ count: Int) -> Fleet {
        let fleet = Fleet(count)
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3550))
        return fleet
    }

    private func refuse(_ index: Int, in fleet: Fleet) throws {
        let caller = fleet.call(index)
        fleet.fail(try fleet.load(index), with: ScriptedFailure.grantRefused)
        #expect((caller.error as? TokenServiceError)?.remedy == .signIn)
    }

    @Test func `37: a refusal that is one service's own fault signs out no other, and the next token ends it`() throws {
        let fleet = fleet(3)
        try refuse(0, in: fleet)
        let second = fleet.call(1), third = fleet.call(2)
        fleet.succeed(try fleet.load(1), with: .granted("second"))
        #expect(second.value?.value == "second" && third.value?.value == "second")
        fleet.advance(by: .seconds(1))
        #expect(fleet.call(0).value?.value == "second")
        #expect(fleet.loaders.map(\.loadCount) == [1, 1, 0])
    }

    @Test func `37: a refusal confirmed by two services expires, and then a third presents the token`() throws {
        let fleet = fleet(3)
        try refuse(0, in: fleet)
        try refuse(1, in: fleet)
        #expect(fleet.record?.trouble?.isRefused == true)
        for _ in 0..<59 {
            #expect((fleet.call(2).error as? TokenServiceError)?.remedy == .signIn)
            fleet.advance(by: .seconds(1))
        }
        #expect(fleet.loaders[2].loadCount == 0)
        fleet.advance(by: .seconds(1))
        let caller = fleet.call(2)
        fleet.succeed(try fleet.load(2), with: .granted("second"))
        #expect(caller.value?.value == "second")
        #expect([0, 1].map { fleet.call($0).value?.value } == ["second", "second"])
    }

    @Test func `37: a program with a wrong client signs no other out, however often it is started again`() throws {
        let fleet = fleet(6)
        for healthy in [5, 0] {
            for start in 1...4 { try refuse(start, in: fleet) }
            #expect(fleet.record?.trouble?.isRefused == false)
            #expect(fleet.record?.trouble?.failures == 0, "nor does it lengthen the others' pauses")
            let caller = fleet.call(healthy), name = "by \(healthy)"
            fleet.succeed(try fleet.load(healthy), with: .granted(name))
            #expect(caller.value?.value == name)
            fleet.advance(by: .seconds(3550))
        }
    }

    @Test func `37: if the grant is really gone, at most three services present it, and the others are refused without a load`()
        throws
    {
        let fleet = fleet(4)
        // The second service is new: nothing shows whether its client is accepted.
        for index in [1, 0, 2] { try refuse(index, in: fleet) }
        #expect(fleet.record?.trouble?.isRefused == true)
        #expect((fleet.call(3).error as? TokenServiceError)?.remedy == .signIn && fleet.loaders[3].loadCount == 0)
        _ = fleet.signIn(3, with: .granted("new"))
        fleet.advance(by: .seconds(1))
        for index in 0...3 { #expect(fleet.call(index).value?.value == "new") }
    }

    @Test func `37: a service that has loaded a token counts as accepted, until the next sign-in`() throws {
        let fleet = Fleet(4)
        _ = fleet.signIn(3, with: AccessToken("", lifetime: .zero, refreshToken: "r1"))
        let caller = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("first"))
        #expect(caller.value?.value == "first")
        fleet.advance(by: .seconds(3550))
        try refuse(0, in: fleet)
        #expect(fleet.record?.trouble?.refuser != nil)
        _ = fleet.signIn(3, with: .granted("second"))
        fleet.advance(by: .seconds(3550))
        try refuse(0, in: fleet)
        #expect(fleet.record?.trouble?.refuser == nil)
    }

    @Test func `37: a service that was refused itself doesn't load again when the fleet's refusal expires`() throws {
        let fleet = fleet(2)
        try refuse(0, in: fleet)
        try refuse(1, in: fleet)
        fleet.advance(by: .seconds(600))
        for index in 0...1 { #expect((fleet.call(index).error as? TokenServiceError)?.remedy == .signIn) }
        #expect(fleet.loaders.map(\.loadCount) == [1, 1])
    }

    @Test func `37: a second refusal of the same service counts for that service alone`() throws {
        let fleet = fleet(2)
        for _ in 1...2 {
            try refuse(0, in: fleet)
            _ = fleet.stage.start { [service = fleet.services[0]] in await service.retryNow() }
        }
        #expect(fleet.record?.trouble?.isRefused == false)
        _ = fleet.call(1)
        #expect(try fleet.load(1).previous?.refreshToken == "first's grant")
    }

    @Test func `37: a failure of another kind doesn't turn a service's first refusal into a second one`() throws {
        var cockpit = Cockpit()
        var failed = expired
        failed.trouble = .init(failures: 2, owner: "other", refuser: "me", isRefused: false, pause: .zero, time: 900)
        _ = try cockpit.present(failed)
        #expect(cockpit.take(.failed(refused)).written?.trouble?.isRefused == false)
        var next = Cockpit()
        _ = try next.present(failed)
        #expect(next.take(.failed(unclear)).written?.trouble?.refuser == "me")
    }

    @Test func `37: a service whose client the server doesn't know pauses no other, however often it is started again`() throws {
        let fleet = fleet(6)
        for start in 1...4 {
            let caller = fleet.call(start)
            fleet.fail(try fleet.load(start), with: ScriptedFailure.clientRefused)
            #expect((caller.error as? TokenServiceError)?.remedy == .clientRegistration)
            #expect(fleet.record?.trouble == nil && fleet.record?.mark == nil)
        }
        let caller = fleet.call(5)
        fleet.succeed(try fleet.load(5), with: .granted("second"))
        #expect(caller.value?.value == "second")
    }

    @Test func `37: a failure that may be a service's own fault leaves the fleet's pause and first refusal as they are`() throws {
        var cockpit = Cockpit()
        var failed = expired
        failed.trouble = .init(failures: 2, owner: "other", refuser: "third", isRefused: false, pause: .seconds(1), time: 900)
        _ = try cockpit.present(failed)
        let wrong = FlightFailure(error: TokenServiceError(.loadFailed, remedy: .clientRegistration), isDefinite: true)
        #expect(cockpit.take(.failed(wrong)).written?.trouble == failed.trouble)
    }
}
