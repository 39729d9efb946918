import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

/// A token of an hour: hard expiry at 3,540 s, handed out after a failure until 3,594 s.
@Suite("Guarantee 44: an outage that a shared token survives costs no caller of any service")
struct SharedOutageTests {
    /// Returns a fleet whose record's token is inside its leeway, and whose second service has never had it.
    private func inLeeway() throws -> (Fleet, Stage.Player<AccessToken>, ScriptedLoader.Call) {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3_545))
        let caller = fleet.call(1)
        #expect(!caller.isDone)
        return (fleet, caller, try fleet.load(1))
    }

    @Test(arguments: [true, false])
    func `44: a service that finds the token in the record hands it out when the load fails or hangs`(hangs: Bool) throws {
        let (fleet, caller, load) = try inLeeway()
        if hangs { fleet.advance(by: .seconds(30)) } else { fleet.fail(load) }
        #expect(caller.value?.value == "first" && fleet.services[1].cachedToken?.value == "first")
        let refused = fleet.retry(1, insteadOf: .granted("first"))
        #expect(refused.code != .reset, "it is a token of the session")
    }

    @Test func `44: a service hands the token out until shortly before its end`() throws {
        let (fleet, _, load) = try inLeeway()
        fleet.fail(load)
        fleet.advance(by: .seconds(49) - .milliseconds(1))
        #expect(fleet.services[1].cachedToken?.value == "first")
        // The wall clock's time is a floating-point number, so allow for rounding.
        fleet.advance(by: .milliseconds(2))
        #expect(fleet.services[1].cachedToken == nil)
    }

    @Test func `44: a service hands the token out while another one loads, even if it last had an earlier token`() throws {
        let fleet = Fleet(3)
        _ = fleet.signIn(0, with: .granted("first"))
        #expect(fleet.call(1).value?.value == "first")
        let number = fleet.services[1].publicationIfNothingDue()
        fleet.advance(by: .seconds(3_545))
        _ = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("second"))
        fleet.advance(by: .seconds(3_545))
        _ = fleet.call(0)
        let caller = fleet.call(1)
        #expect(!caller.isDone && fleet.loaders[1].loadCount == 0)
        fleet.advance(by: .seconds(30))
        #expect(caller.value?.value == "second")
        #expect(number != nil && fleet.services[1].publicationIfNothingDue() != number, "a line of callbacks may have the first")
    }

    @Test func `44: after a refusal, or a transient failure that follows one, the token isn't handed out`() throws {
        let (fleet, caller, load) = try inLeeway()
        fleet.fail(load, with: ScriptedFailure.grantRefused)
        #expect(caller.code == .loadFailed)
        _ = fleet.stage.start { [service = fleet.services[1]] in await service.retryNow() }
        let next = fleet.call(1)
        fleet.fail(try fleet.load(1))
        #expect(next.code == .loadFailed && fleet.services[1].cachedToken == nil)
    }

    @Test func `44: after a resource server has refused the token, it isn't handed out`() throws {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3_545))
        _ = fleet.stage.start { [service = fleet.services[1]] in await service.invalidate(.granted("first")) }
        let caller = fleet.call(1)
        fleet.fail(try fleet.load(1))
        #expect(caller.code == .loadFailed)
    }

    @Test func `44: while a token is good, no failure of a call with a demand shortens the pauses or stops later callers`() throws
    {
        let fleet = Fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        func demand(_ index: Int = 0) -> Stage.Player<AccessToken> {
            fleet.stage.start { [service = fleet.services[index]] in try await service.retrieveToken(validFor: .seconds(3_000)) }
        }
        fleet.advance(by: .seconds(2_000))
        for pause in [38, 75] {
            let caller = demand()
            fleet.fail(try fleet.load(0))
            #expect(caller.value?.value == "first")
            fleet.advance(by: .seconds(5))
            #expect(demand().value?.value == "first", "the service's own pause, 30 s and then 60 s, isn't over")
            fleet.advance(by: .seconds(pause))
        }
        let caller = demand()
        fleet.fail(try fleet.load(0))
        #expect(caller.value?.value == "first")
        // What the other one finds in the record is no server's wish, either.
        #expect(demand(1).value?.value == "first")
        _ = fleet.stage.start { [service = fleet.services[0]] in await service.invalidate(.granted("first")) }
        let next = fleet.call(0)
        #expect(!next.isDone)
        fleet.succeed(try fleet.load(0), with: .granted("second"))
        #expect(next.value?.value == "second")
    }
}
