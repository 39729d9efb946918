import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

/// The server may still be working on such a request, but nobody gets its answer, so no wait saves what the server does with it.
@Suite("A request without an answer")
struct UnansweredTests {
    /// Returns two services, of which the first has begun to load.
    private func loading(_ sharing: TokenSharing = TokenSharing()) throws -> (fleet: Fleet, load: ScriptedLoader.Call) {
        let fleet = Fleet(sharing: sharing)
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3595))
        _ = fleet.call(0)
        return (fleet, try fleet.load(0))
    }

    @Test(arguments: [0, 1])
    func `51: after a lost answer the next caller of any service presents the token at once`(next: Int) throws {
        let (fleet, load) = try loading()
        fleet.advance(by: .seconds(15))
        fleet.fail(load, with: ScriptedFailure.transient)
        #expect(fleet.record?.mark == nil && fleet.record?.trouble?.failures == 1)
        let caller = fleet.call(next)
        let again = try fleet.load(next)
        #expect(again.previous?.refreshToken == "first's grant")
        fleet.succeed(again, with: .granted("second"))
        #expect(caller.value?.value == "second" && fleet.call(1 - next).value?.value == "second")
    }

    @Test func `51: after a second lost answer the fleet's pauses apply`() throws {
        let (fleet, load) = try loading()
        fleet.fail(load, with: ScriptedFailure.transient)
        _ = fleet.call(1)
        fleet.fail(try fleet.load(1), with: ScriptedFailure.transient)
        for index in 0...1 { #expect(fleet.call(index).code == .loadFailed) }
        #expect(fleet.loaders.map(\.loadCount) == [1, 1])
        fleet.advance(by: .seconds(2))
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.refreshToken == "first's grant")
    }

    @Test func `31: while a loader may still get its answer, the mark stays`() throws {
        let (fleet, _) = try loading()
        fleet.advance(by: .seconds(40))
        let caller = fleet.call(1)
        #expect(!caller.isDone && fleet.record?.mark != nil && fleet.loaders[1].loadCount == 0)
    }

    @Test func `31: with a stated grace period a load repeats its request after a lost answer`() throws {
        let (fleet, load) = try loading(TokenSharing(serverGrace: .seconds(30)))
        let caller = fleet.call(0)
        fleet.advance(by: .seconds(10))
        fleet.fail(load, with: ScriptedFailure.transient)
        let again = try fleet.load(0)
        #expect(again.previous?.refreshToken == "first's grant" && fleet.record?.mark != nil)
        fleet.succeed(again, with: .granted("second"))
        #expect(caller.value?.value == "second")
        #expect(fleet.record?.token?.value == "second" && fleet.record?.mark == nil)
    }

    @Test func `31: a load sends its request at most twice, and the next caller's load sends it again`() throws {
        let (fleet, load) = try loading(TokenSharing(serverGrace: .seconds(30)))
        fleet.fail(load, with: ScriptedFailure.transient)
        fleet.fail(try fleet.load(0), with: ScriptedFailure.transient)
        #expect(fleet.loaders[0].loadCount == 2)
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.refreshToken == "first's grant")
    }
}
