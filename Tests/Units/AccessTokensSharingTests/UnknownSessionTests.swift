import AccessTokensTesting
import Foundation
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("Sessions that a service doesn't know, and services without a session")
struct UnknownSessionTests {
    private let store = OddSharedStore()

    /// Returns a fleet whose second service has the odd store.
    private func fleet(isRepeatable: Bool = false) -> Fleet {
        Fleet(isRepeatable: isRepeatable, store: { [store] in store.over($0) })
    }

    /// Counts the ends of sessions in a service's stream of events.
    private func watch(_ index: Int, _ fleet: Fleet) -> Log<TokenEvent.Name> {
        let log = Log<TokenEvent.Name>(), events = fleet.services[index].events()
        _ = fleet.stage.start { for await event in events where event.name == .reset { log.append(event.name) } }
        return log
    }

    /// Zoe signs out at one service, and the other notices.
    private func zoesEnd() -> Fleet {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("zoe"))
        #expect(fleet.call(1).value?.value == "zoe")
        _ = fleet.signOut(1)
        #expect(fleet.retry(0, insteadOf: .granted("zoe")).code == .reset)
        return fleet
    }

    @Test(arguments: [true, false])
    func `43: a sign-in at a signed-out service is a change of user for services that signed in meanwhile`(
        isLate: Bool
    ) throws {
        let fleet = zoesEnd()
        if isLate {
            store.isDown = true
            #expect(fleet.signIn(1, with: .granted("ben"))?.storeFailure != nil)
            store.isDown = false
        }
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(0).value?.value == "anna")
        if isLate { _ = fleet.retry(1, insteadOf: .granted("ben")) } else { _ = fleet.signIn(1, with: .granted("ben")) }
        #expect(fleet.record?.token?.value == "ben")
        #expect(fleet.retry(0, insteadOf: .granted("anna")).code == .reset)
        #expect(fleet.discarded.entries == ["zoe signedOut", "anna signedOut"])
    }

    @Test func `43: a late sign-in by a service that has never read is a change of user for signed-in services`() {
        let fleet = fleet()
        store.isDown = true
        _ = fleet.signIn(1, with: .granted("ben"))
        store.isDown = false
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(0).value?.value == "anna")
        _ = fleet.retry(1, insteadOf: .granted("ben"))
        #expect(fleet.record?.token?.value == "ben")
        #expect(fleet.retry(0, insteadOf: .granted("anna")).code == .reset)
    }

    @Test func `34: a sign-in by a service that has just started ends no other service's session`() {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        _ = fleet.signIn(1, with: .granted("anna's next"))
        #expect(fleet.retry(0, insteadOf: .granted("anna")).value?.value == "anna's next")
    }

    // MARK: A restored backup

    /// Anna is signed in at both services and signs out at one, where Ben signs in; then a backup of Anna's record is restored,
    /// and renewed by the other service.
    private func restored(renewals: Int) async throws -> Fleet {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(1).value?.value == "anna")
        let backup = try #require(fleet.memory.contents?.bytes)
        _ = fleet.signOut(0)
        _ = fleet.signIn(0, with: .granted("ben"))
        #expect(fleet.call(0).value?.value == "ben")
        _ = await fleet.memory.swap(backup, ifAt: fleet.memory.contents?.revision)
        var last = "anna"
        for number in 0..<renewals {
            fleet.advance(by: .seconds(31))
            let caller = fleet.retry(1, insteadOf: .granted(last))
            last = "anna+\(number)"
            fleet.succeed(try fleet.load(1), with: .granted(last))
            #expect(caller.value?.value == last)
        }
        return fleet
    }

    @Test(arguments: [0, 1, 2, 4, 9])
    func `34: services that know of a sign-out refuse a restored record from before it, however often it was renewed`(
        renewals: Int
    ) async throws {
        let fleet = try await restored(renewals: renewals)
        let caller = fleet.retry(0, insteadOf: .granted("ben"))
        #expect(caller.code == .storeFailed && (caller.error as? TokenServiceError)?.remedy == .signIn)
        fleet.advance(by: .seconds(2))
        #expect(fleet.call(0).code == .storeFailed, "nor does a look adopt it")
        #expect(fleet.loaders[0].loadCount == 0)
        // A sign-in by a service that knows about the sign-out repairs the record.
        _ = fleet.signIn(0, with: .granted("ben's next"))
        #expect(fleet.call(1).value != nil || renewals == 0)
        let last = renewals == 0 ? "anna" : "anna+\(renewals - 1)"
        #expect(fleet.retry(1, insteadOf: .granted(last)).code == .reset)
        #expect([0, 1].map { fleet.call($0).value?.value } == ["ben's next", "ben's next"])
    }

    @Test func `34: a sign-out by a service that knows no earlier, lost one is a change of user for services that do`()
        async throws
    {
        let fleet = try await restored(renewals: 0)
        fleet.advance(by: .seconds(1))
        _ = fleet.signOut(1)
        _ = fleet.signIn(1, with: .granted("carol"))
        let caller = fleet.retry(0, insteadOf: .granted("ben"))
        #expect(caller.code == .reset && fleet.loaders[0].loadCount == 0)
        #expect(fleet.call(0).value?.value == "carol")
    }

    @Test(
        arguments: [
            (3, nil, 4), (3, -1e300, 4), (3, 2, 2_000_000), (3, 1e300, 1 << 53), (1 << 60, 1e300, 1 << 60 + 1),
        ] as [(UInt64, Double?, UInt64)])
    func `a sign-out takes its number from the clock, and never a lower one`(last: UInt64, wall: Double?, next: UInt64) {
        let record = GrantRecord(write: "theirs", generation: last, token: .granted("theirs"))
        guard case .write(let written) = SharedFence(nil, number: 1, owner: "me", after: nil).verdict(on: record, wall: wall)
        else {
            return #expect(Bool(false))
        }
        #expect(written.generation == next && written.signedOut == next)
    }

    @Test func `34: a sign-in by a service that doesn't know of the record's removal is a change of user for the others`()
        async throws
    {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("zoe"))
        _ = fleet.signOut(0)
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(0).value?.value == "anna")
        fleet.advance(by: .seconds(100))
        _ = await fleet.memory.swap(Data(), ifAt: fleet.memory.contents?.revision)
        _ = fleet.signIn(1, with: .granted("ben"))
        #expect(fleet.retry(0, insteadOf: .granted("anna")).code == .reset)
        #expect(fleet.call(0).value?.value == "ben")
    }

    @Test func `34: a sign-in over a mark in place of a removed record is a change of user for the other services`() async throws
    {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(0).value?.value == "anna")
        fleet.advance(by: .seconds(100))
        _ = await fleet.memory.swap(Data(), ifAt: fleet.memory.contents?.revision)
        let caller = fleet.call(1)
        fleet.fail(try fleet.load(1), with: ScriptedFailure.grantRefused)
        #expect(caller.code == .loadFailed)
        _ = fleet.signIn(1, with: .granted("ben"))
        #expect(fleet.retry(0, insteadOf: .granted("anna")).code == .reset)
        #expect(fleet.call(0).value?.value == "ben")
    }

    @Test func `a repeatable load that finds a restored record from before a sign-out writes the sign-out again`() async throws {
        let fleet = fleet(isRepeatable: true)
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(1).value?.value == "anna")
        let backup = try #require(fleet.memory.contents?.bytes)
        _ = fleet.signOut(0)
        _ = await fleet.memory.swap(backup, ifAt: fleet.memory.contents?.revision)
        let caller = fleet.call(0), load = try fleet.load(0)
        #expect(load.previous == nil)
        fleet.succeed(load, with: .hour("program"))
        #expect(caller.value?.value == "program" && fleet.record?.signedOut == 2)
        fleet.advance(by: .seconds(3595))
        _ = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .hour("program's next"))
        #expect(fleet.record?.token?.value == "program's next" && fleet.record?.signedOut == 2)
    }

    @Test func `34: a token that reaches the store late, and that a sign-out finds there, is handed over once`() async throws {
        let fleet = fleet()
        _ = fleet.signIn(1, with: .granted("anna"))
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(1)
        let load = try fleet.load(1)
        store.next(.isLate, .fails)
        fleet.succeed(load, with: .granted("anna's next"))
        await store.land()
        #expect(fleet.record?.token?.value == "anna's next")
        _ = fleet.signOut(1)
        fleet.advance(by: .seconds(5))
        #expect(fleet.discarded.entries.filter { $0.contains("next") } == ["anna's next signedOut"])
    }

    // MARK: Ends

    @Test(arguments: [nil, "carol"] as [String?])
    func `6: a call after the service's own sign-out gets nothing of the session before a late sign-in`(
        next: String?
    ) throws {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(1).value?.value == "anna")
        _ = fleet.signOut(0)
        _ = fleet.signIn(0, with: .granted("ben"))
        let ends = watch(1, fleet)
        store.hold()
        _ = fleet.signIn(1, with: .granted("anna's next"))
        _ = fleet.signOut(1)
        if let next { _ = fleet.signIn(1, with: .granted(next)) }
        let caller = fleet.call(1)
        #expect(!caller.isDone)
        store.release()
        fleet.stage.run()
        if let next {
            #expect(caller.value?.value == next && fleet.retry(1, insteadOf: .granted(next)).code != .reset)
        } else {
            #expect(!caller.isDone)
            #expect(try fleet.load(1).previous == nil)
        }
        #expect(ends.entries.count == 1)
    }

    @Test func `34: a sign-out elsewhere ends no session at a service that has none`() throws {
        let fleet = zoesEnd()
        let ends = [0, 1].map { watch($0, fleet) }
        // Two sign-outs that neither service notices at once.
        _ = fleet.signIn(1, with: .granted("anna"))
        _ = fleet.signOut(1)
        _ = fleet.signIn(1, with: .granted("ben"))
        #expect(fleet.call(0).value?.value == "ben")
        #expect(ends[0].entries.isEmpty && ends[1].entries.count == 1)
        #expect(fleet.retry(0, insteadOf: .granted("zoe")).code == .reset)
    }

    @Test func `34: a sign-in at a service without a session ends none, even if it doesn't know the last sign-out`() {
        let fleet = zoesEnd()
        _ = fleet.signIn(1, with: .granted("anna"))
        _ = fleet.signOut(1)
        let ends = watch(0, fleet)
        _ = fleet.signIn(0, with: .granted("ben"))
        #expect(fleet.call(0).value?.value == "ben" && ends.entries.isEmpty)
        #expect(fleet.call(1).value?.value == "ben")
    }

    @Test func `34: a caller that waits at a service without a session gets the token of the next one`() throws {
        let fleet = zoesEnd()
        let waiting = fleet.call(0), load = try fleet.load(0)
        _ = fleet.signIn(1, with: .granted("anna"))
        _ = fleet.signOut(1)
        _ = fleet.signIn(1, with: .granted("ben"))
        fleet.fail(load, with: ScriptedFailure.grantRefused)
        #expect(waiting.value?.value == "ben")
    }

    @Test func `34: a token loaded in memory, without a record, belongs to a session, too`() throws {
        let fleet = fleet(isRepeatable: true)
        _ = fleet.signIn(1, with: .granted("zoe"))
        _ = fleet.signOut(1)
        fleet.advance(by: .seconds(1))
        store.isDown = true
        let caller = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .hour("program"))
        #expect(caller.value?.value == "program")
        store.isDown = false
        _ = fleet.signIn(1, with: .granted("anna"))
        let retry = fleet.retry(0, insteadOf: .hour("program"))
        #expect(retry.value?.value == "anna", "it has never read, so it knows of no sign-out")
        _ = fleet.signOut(1)
        _ = fleet.signIn(1, with: .granted("ben"))
        #expect(fleet.retry(0, insteadOf: .granted("anna")).code == .reset)
    }
}
