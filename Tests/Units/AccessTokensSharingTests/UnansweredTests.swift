import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("A request that has no answer")
struct UnansweredTests {
    private struct Busy: TokenLoadFailure {
        var remedy: TokenServiceError.Remedy { .retry }
        var mayBeUnderWay: Bool { false }
    }

    /// Returns a single service whose load has begun.
    private func loading(_ sharing: TokenSharing = TokenSharing()) throws -> (fleet: Fleet, load: ScriptedLoader.Call) {
        let fleet = Fleet(sharing: sharing)
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3595))
        _ = fleet.call(0)
        return (fleet, try fleet.load(0))
    }

    @Test func `26: after its own time-out a service presents nothing while the request may be under way`() throws {
        let (fleet, load) = try loading()
        fleet.advance(by: .seconds(15))
        fleet.fail(load, with: ScriptedFailure.transient)
        let caller = fleet.call(0)
        let error = try #require(caller.error as? TokenServiceError)
        #expect(error.remedy == .retry && error.retryAt != nil)
        #expect(error.underlying as? FailedElsewhere == .unanswered)
        fleet.stage.start { [service = fleet.services[0]] in await service.retryNow() }
        _ = fleet.call(0)
        fleet.advance(by: .seconds(44))
        _ = fleet.call(0)
        #expect(fleet.loaders[0].loadCount == 1)
        fleet.advance(by: .seconds(1))
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.refreshToken == "first's grant")
    }

    @Test func `26: callers wait for the end of an earlier request if their own time is longer`() throws {
        let (fleet, load) = try loading()
        fleet.advance(by: .seconds(29))
        fleet.fail(load, with: ScriptedFailure.transient)
        fleet.advance(by: .seconds(5))
        let caller = fleet.call(0)
        fleet.advance(by: .seconds(25))
        #expect(!caller.isDone && fleet.loaders[0].loadCount == 1)
        fleet.advance(by: .seconds(1))
        fleet.succeed(try fleet.load(0), with: .granted("second"))
        #expect(caller.value?.value == "second")
    }

    @Test func `a failure that says that nothing is under way ends the mark, and the next caller asks at once`() throws {
        let (fleet, load) = try loading()
        fleet.fail(load, with: Busy())
        #expect(fleet.record?.mark == nil)
        let other = fleet.call(1)
        #expect(try fleet.load(1).previous?.refreshToken == "first's grant")
        #expect(!other.isDone)
    }

    @Test func `a sign-in ends the wait, since its token is another`() throws {
        let (fleet, load) = try loading()
        fleet.fail(load, with: ScriptedFailure.transient)
        _ = fleet.signIn(0, with: AccessToken("", lifetime: .zero, refreshToken: "next"))
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.refreshToken == "next")
    }

    @Test func `31: with a stated grace period a lost answer is asked for again at once`() throws {
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

    @Test func `31: a flight asks twice at most, and the next caller asks again within the grace period`() throws {
        let (fleet, load) = try loading(TokenSharing(serverGrace: .seconds(30)))
        fleet.fail(load, with: ScriptedFailure.transient)
        fleet.fail(try fleet.load(0), with: ScriptedFailure.transient)
        #expect(fleet.loaders[0].loadCount == 2)
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.refreshToken == "first's grant")
    }

    @Test func `31: after the grace period a lost answer isn't asked for before the request must have ended`() throws {
        let (fleet, load) = try loading(TokenSharing(serverGrace: .seconds(10)))
        fleet.advance(by: .seconds(10))
        fleet.fail(load, with: ScriptedFailure.transient)
        _ = fleet.call(0)
        #expect(fleet.loaders[0].loadCount == 1)
    }
}
