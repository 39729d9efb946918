import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("Guarantees 43 and 45, where services share a grant")
struct FleetSessionTests {
    @Test func `43: a refused request of an earlier user gets the reset error, also in the other service`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(1).value?.value == "anna")
        _ = fleet.signOut(0)
        // The other service hasn't noticed it yet.
        let caller = fleet.retry(1, insteadOf: .granted("anna"))
        #expect(caller.code == .reset)
        _ = fleet.signIn(0, with: .granted("ben"))
        #expect(fleet.retry(1, insteadOf: .granted("anna")).code == .reset)
        #expect(fleet.retry(0, insteadOf: .granted("anna")).code == .reset)
        #expect(fleet.loaders.allSatisfy { $0.loadCount == 0 })
    }

    @Test(arguments: 0..<12)
    func `43: a refused request during a sign-in that doesn't know of a sign-out yet gets the reset error`(
        rounds: Int
    ) {
        let fleet = Fleet(), elsewhere = Stage(), anna = AccessToken.granted("anna")
        _ = fleet.signIn(0, with: anna)
        #expect(fleet.call(1).value?.value == "anna")
        _ = fleet.signOut(1)
        // The request asks while the sign-in is under way, and waits for the token after the sign-in.
        let signIn = Task(executorPreference: fleet.stage) { [service = fleet.services[0]] in
            await service.replace(with: .granted("ben"))
        }
        for _ in 0..<rounds { fleet.stage.runOnce() }
        let request = elsewhere.start { [service = fleet.services[0]] in try await service.retrieveToken(insteadOf: anna) }
        fleet.stage.run()
        elsewhere.run()
        fleet.stage.run()
        elsewhere.run()
        #expect(request.code == .reset)
        #expect(fleet.call(0).value?.value == "ben")
        _ = signIn
    }

    @Test func `43: a refused request gets the token that another service has loaded in the same session`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(1).value?.value == "anna")
        let first = fleet.retry(0, insteadOf: .granted("anna"))
        fleet.succeed(try fleet.load(0), with: .granted("anna 2"))
        #expect(first.value?.value == "anna 2")
        #expect(fleet.retry(1, insteadOf: .granted("anna")).value?.value == "anna 2")
        #expect(fleet.loaders[1].loadCount == 0)
    }

    @Test func `45: drain waits until the record has the token of a running load`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3_000))
        #expect(fleet.call(0).value?.value == "first")
        let refresh = try fleet.load(0)
        let end = fleet.stage.start { [service = fleet.services[0]] in await service.drain(within: .seconds(10)).isComplete }
        #expect(!end.isDone)
        fleet.succeed(refresh, with: .granted("second"))
        #expect(end.value == true && fleet.record?.token?.value == "second" && fleet.record?.mark == nil)
    }

    @Test(arguments: [true, false])
    func `45: during a drain, a load that waits for another process's mark begins only if a caller waits for it`(isAwaited: Bool)
        throws
    {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3_550))
        _ = fleet.call(0)
        let load = try fleet.load(0), caller = fleet.call(1)
        if !isAwaited {
            caller.cancel()
            fleet.stage.run()
        }
        let end = fleet.stage.start { [service = fleet.services[1]] in await service.drain(within: .seconds(10)).isComplete }
        #expect(!end.isDone)
        fleet.fail(load, with: ScriptedFailure.grantRefused)
        #expect(fleet.loaders[1].loadCount == (isAwaited ? 1 : 0))
        if isAwaited { fleet.succeed(try fleet.load(1), with: .granted("second")) }
        #expect(end.value == true && fleet.record?.mark == nil)
        guard !isAwaited else { return }
        #expect(fleet.call(1).isDone && fleet.loaders[1].loadCount == 0, "it gets what is left of the token")
        fleet.stage.start { [service = fleet.services[1]] in await service.resume() }
        _ = fleet.call(1)
        #expect(try fleet.load(1).previous?.refreshToken == "first's grant")
    }

    @Test func `45: drain waits until a mark that has lost its purpose is taken back`() throws {
        let store = OddSharedStore()
        let fleet = Fleet(store: { store.over($0) })
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3_595))
        store.next(.isLate, .fails, .fails)
        #expect(fleet.call(0).code == .storeFailed)
        fleet.stage.start { await store.land() }
        fleet.stage.run()
        let end = fleet.stage.start { [service = fleet.services[0]] in await service.drain(within: .seconds(10)).isComplete }
        #expect(!end.isDone && fleet.record?.mark != nil)
        fleet.advance(by: .seconds(1))
        fleet.advance(by: .seconds(2))
        #expect(end.value == true && fleet.record?.mark == nil)
    }
}
