import AccessTokensTesting
import Foundation
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("A sign-out that another user's sign-in follows before other services read the record")
struct ChangedUserTests {
    private func signedIn(_ generation: UInt64, signedOut: UInt64) -> GrantRecord {
        var next = record(generation, .granted("bob"))
        (next.fence, next.signedOut) = ("other.fence.2", signedOut)
        return next
    }

    @Test func `34: a caller that waits while another user signs in gets the reset error, not that user's token`() throws {
        let store = OddSharedStore()
        let fleet = Fleet(3, store: { store.over($0) })
        _ = fleet.signIn(0, with: .granted("anna"))
        fleet.advance(by: .seconds(3550))
        let first = fleet.call(0)
        let load = try fleet.load(0)
        let waiting = fleet.call(1)
        // Both are written to the record in one swap.
        store.isDown = true
        #expect(fleet.signOut(2)?.storeFailure != nil)
        store.isDown = false
        #expect(fleet.signIn(2, with: .granted("bob"))?.storeFailure == nil)
        #expect(waiting.code == .reset)
        fleet.succeed(load, with: .granted("late"))
        #expect(first.code == .reset)
        #expect(fleet.discarded.entries.contains("late signedOut"))
        #expect([0, 1].map { fleet.call($0).value?.value } == ["bob", "bob"])
        #expect(fleet.record?.token?.value == "bob")
    }

    @Test func `34: with an interval, a service ends its session before it adopts the next user's token`() throws {
        let store = OddSharedStore()
        let fleet = Fleet(sharing: TokenSharing(checkEvery: .seconds(10)), store: { store.over($0) })
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(0).value?.value == "anna")
        store.isDown = true
        _ = fleet.signOut(1)
        store.isDown = false
        _ = fleet.signIn(1, with: .granted("bob"))
        let events = fleet.services[0].events()
        fleet.advance(by: .seconds(10))
        #expect(fleet.call(0).value?.value == "anna", "the look is not waited for")
        #expect(fleet.services[0].cachedToken == nil)
        #expect(fleet.call(0).value?.value == "bob")
        let names = fleet.stage.start { () -> [TokenEvent.Name] in
            var names: [TokenEvent.Name] = []
            for await event in events {
                names.append(event.name)
                if event.name == .restored { break }
            }
            return names
        }
        #expect(names.value?.contains(.reset) == true)
    }

    @Test func `34: another user's sign-in first ends the session, once, and is then adopted`() {
        var cockpit = Cockpit(knowing: .init(generation: 3, signedOut: 0, session: "me.fence.1"))
        #expect(cockpit.take(.read(seen(signedIn(5, signedOut: 4)))).outcome == .signedOut(isOfSession: true))
        var next = Cockpit(knowing: cockpit.flight.knowledge)
        #expect(
            next.take(.read(seen(signedIn(5, signedOut: 4)))).outcome == .token(.granted("bob"), age: .zero, isAdopted: true))
    }

    @Test func `34: a service that hasn't read the record yet has no session to end`() {
        var cockpit = Cockpit()
        #expect(
            cockpit.take(.read(seen(signedIn(5, signedOut: 4)))).outcome == .token(.granted("bob"), age: .zero, isAdopted: true))
    }

    @Test func `35: a sign-in that no sign-out preceded is adopted, and ends no session`() {
        var cockpit = Cockpit(knowing: .init(generation: 7, signedOut: 4))
        #expect(
            cockpit.take(.read(seen(signedIn(8, signedOut: 4)))).outcome == .token(.granted("bob"), age: .zero, isAdopted: true))
    }

    @Test func `a record with a token, a mark or a failure keeps the number of the last sign-out`() throws {
        var cockpit = Cockpit()
        var old = expired
        old.signedOut = 2
        #expect(try cockpit.present(old).signedOut == 2)
        #expect(cockpit.take(.loaded(.granted("new"))).written?.signedOut == 2)
        var other = Cockpit()
        _ = try other.present(old)
        #expect(other.take(.failed(unclear)).written?.signedOut == 2)
    }

    @Test func `a sign-in that reaches the store together with a sign-out counts as the later one`() {
        let signOut = SharedFence(nil, number: 1, owner: "me", after: nil)
        let token = StoredToken(.granted("bob"), received: .distantPast)
        let signIn = SharedFence(token, number: 2, owner: "me", after: signOut)
        guard case .write(let next) = signIn.verdict(on: expired, knowing: .init(seen: 3), wall: nil) else {
            return #expect(Bool(false))
        }
        #expect(next.generation == 5 && next.signedOut == 4)
        let later = SharedFence(token, number: 3, owner: "me", after: nil)
        guard case .write(let last) = later.verdict(on: next, knowing: .init(seen: 5), wall: nil) else {
            return #expect(Bool(false))
        }
        #expect(last.generation == 6 && last.signedOut == 4)
        guard case .write(let gone) = signOut.verdict(on: last, knowing: .init(seen: 6), wall: nil) else {
            return #expect(Bool(false))
        }
        #expect(gone.generation == 7 && gone.signedOut == 7)
    }

    /// Anna is signed in, and both services have handed out her token.
    private func annas(_ count: Int = 2) -> Fleet {
        let fleet = Fleet(count)
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(1).value?.value == "anna")
        return fleet
    }

    @Test func `43: a sign-in after a sign-out elsewhere first ends the service's own session, even without a read between`() {
        let fleet = annas()
        _ = fleet.signOut(0)
        #expect(fleet.signIn(1, with: .granted("ben"))?.storeFailure == nil)
        #expect(fleet.retry(1, insteadOf: .granted("anna")).code == .reset)
        #expect(fleet.call(1).value?.value == "ben" && fleet.retry(1, insteadOf: .granted("old")).code == .reset)
        #expect(fleet.call(0).value?.value == "ben", "a sign-in after a sign-out ends no session")
    }

    @Test func `34: a caller that waits for the last user's token doesn't get that of a sign-in at its own service`() throws {
        let fleet = annas()
        fleet.advance(by: .seconds(3550))
        let waiting = fleet.call(1), load = try fleet.load(1)
        _ = fleet.signOut(0)
        _ = fleet.signIn(1, with: .granted("ben"))
        #expect(waiting.code == .reset)
        fleet.succeed(load, with: .granted("late"))
        #expect(fleet.call(1).value?.value == "ben" && fleet.record?.token?.value == "ben")
    }

    @Test func `43: a sign-in by a service that doesn't know the last sign-out is a change of user for all`() {
        let fleet = annas(3)
        _ = fleet.signOut(0)
        _ = fleet.signIn(0, with: .granted("ben"))
        #expect(fleet.call(2).value?.value == "ben")
        _ = fleet.signIn(1, with: .granted("anna's next"))
        for (index, token) in [(0, "ben"), (1, "anna"), (2, "ben")] {
            #expect(fleet.retry(index, insteadOf: .granted(token)).code == .reset, "\(index)")
            #expect(fleet.call(index).value?.value == "anna's next", "\(index)")
        }
    }

    @Test(arguments: [true, false])
    func `34: a given-up load that learns of a sign-out ends the session, too`(hasToken: Bool) throws {
        let fleet = Fleet(isRepeatable: true)
        _ = fleet.signIn(0, with: .granted("old"))
        fleet.advance(by: .seconds(4000))
        _ = fleet.call(1)
        let first = try fleet.load(1)
        fleet.advance(by: .seconds(31))
        let second = fleet.call(1)
        fleet.succeed(try fleet.load(1), with: .granted("anna"))
        #expect(second.value?.value == "anna")
        _ = fleet.signOut(0)
        _ = fleet.signIn(0, with: .granted("ben"))
        if hasToken { fleet.succeed(first, with: .granted("late")) } else { fleet.fail(first) }
        #expect(fleet.services[1].cachedToken == nil)
        #expect(fleet.retry(1, insteadOf: .granted("anna")).code == .reset)
        #expect(fleet.call(1).value?.value == "ben")
    }
}
