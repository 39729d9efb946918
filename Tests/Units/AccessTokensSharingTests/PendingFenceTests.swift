import AccessTokensTesting
import Foundation
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

/// A store whose second swap takes effect at once and answers 7 s later.
private struct SlowSwapStore: SharedTokenStore {
    let store: InMemorySharedTokenStore
    let clock: ManualClock
    let swaps = Log<Void>()

    @concurrent func load() async throws -> SharedRecord? { await store.load() }

    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        swaps.append(())
        let isSlow = swaps.entries.count == 2, swap = await store.swap(bytes, ifAt: revision)
        if isSlow { try await clock.sleep(for: .seconds(7)) }
        return swap
    }

    @concurrent func changedRecord(from revision: SharedRecord.Revision?, atMost limit: Duration) async throws -> SharedRecord? {
        try await store.changedRecord(from: revision, atMost: limit)
    }
}

@Suite("Sign-ins and sign-outs that reach a shared store late")
struct PendingFenceTests {
    private let store = OddSharedStore()

    private func fleet(isRepeatable: Bool = false) -> Fleet {
        Fleet(isRepeatable: isRepeatable, store: { [store] in store.over($0) })
    }

    private func land(_ fleet: Fleet) {
        fleet.stage.start { [store] in await store.land() }
        fleet.stage.run()
    }

    @Test func `36: a repeatable load goes on in memory while a sign-out has yet to reach the store`() throws {
        let fleet = fleet(isRepeatable: true)
        _ = fleet.signIn(0, with: .granted("first"))
        store.isDown = true
        #expect(fleet.signOut(0)?.storeFailure != nil)
        let caller = fleet.call(0)
        let load = try fleet.load(0)
        #expect(load.previous == nil)
        fleet.succeed(load, with: .hour("second"))
        #expect(caller.value?.value == "second")
        store.isDown = false
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(0)
        _ = try fleet.load(0)
        #expect(fleet.record?.isTombstone == true, "the sign-out is written before the next load")
        #expect(fleet.discarded.entries == ["first signedOut"])
    }

    @Test func `36: an unrepeatable load waits for a sign-out to reach the store`() throws {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        store.isDown = true
        _ = fleet.signOut(0)
        #expect(fleet.call(0).code == .storeFailed)
        #expect(fleet.loaders[0].loadCount == 0)
    }

    @Test func `a grant that a load finds in the record when it writes a pending sign-out is handed over once`() throws {
        let fleet = fleet()
        _ = fleet.signIn(1, with: .granted("theirs"))
        store.isDown = true
        #expect(fleet.signOut(0)?.storeFailure != nil)
        store.isDown = false
        _ = fleet.call(0)
        #expect(fleet.record?.isTombstone == true)
        #expect(fleet.discarded.entries == ["theirs signedOut"])
        fleet.advance(by: .seconds(3550))
        _ = fleet.signOut(0)
        #expect(fleet.discarded.entries == ["theirs signedOut"])
    }

    @Test func `a grant that a sign-out replaced is handed over, even if only its second attempt learns of its success`() throws {
        let fleet = fleet()
        _ = fleet.signIn(1, with: .granted("theirs"))
        store.next(.isLate)
        #expect(fleet.signOut(0)?.storeFailure != nil)
        #expect(fleet.record?.token?.value == "theirs")
        land(fleet)
        #expect(fleet.record?.isTombstone == true)
        _ = fleet.call(0)
        #expect(fleet.discarded.entries == ["theirs signedOut"])
    }

    @Test func `a sign-out before the store has answered also returns the grant that the preceding sign-in replaced`() throws {
        let fleet = fleet()
        _ = fleet.signIn(1, with: .granted("theirs"))
        store.next(.isLate)
        #expect(fleet.signIn(0, with: .granted("mine"))?.storeFailure != nil)
        land(fleet)
        #expect(fleet.record?.token?.value == "mine")
        let change = fleet.signOut(0)
        #expect(change?.storeFailure == nil && change?.discarded.map(\.value) == ["mine", "theirs"])
        #expect(fleet.discarded.entries.sorted() == ["mine signedOut", "theirs replaced"])
    }

    @Test func `a sign-out isn't forgotten when an earlier sign-in of the same service takes effect late`() throws {
        let fleet = fleet()
        store.next(.isLate, .fails)
        #expect(fleet.signIn(0, with: .granted("mine"))?.storeFailure != nil)
        #expect(fleet.signOut(0)?.storeFailure != nil)
        land(fleet)
        #expect(fleet.record?.token?.value == "mine")
        _ = fleet.call(0)
        #expect(fleet.record?.isTombstone == true)
        #expect(fleet.discarded.entries == ["mine signedOut"])
    }

    @Test func `a grant that a failed sign-out should have replaced counts as signed out, even after a later sign-in`() throws {
        let fleet = fleet()
        _ = fleet.signIn(1, with: .granted("theirs"))
        store.isDown = true
        #expect(fleet.signOut(0)?.storeFailure != nil)
        #expect(fleet.signIn(0, with: .granted("mine"))?.storeFailure != nil)
        store.isDown = false
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(0)
        #expect(fleet.discarded.entries == ["theirs signedOut"])
    }

    @Test func `a sign-in that another service's has overtaken is handed over`() throws {
        let fleet = fleet()
        store.next(.isLate)
        #expect(fleet.signIn(0, with: .granted("mine"))?.storeFailure != nil)
        #expect(fleet.signIn(1, with: .granted("theirs"))?.storeFailure == nil)
        land(fleet)
        fleet.advance(by: .seconds(3550))
        #expect(fleet.call(0).code == .reset, "the session here has ended")
        #expect(fleet.discarded.entries == ["mine superseded"])
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.value == "theirs")
        #expect(fleet.discarded.entries == ["mine superseded"])
    }

    /// A fleet whose first service has signed in or out while the store was down.
    private func pending(_ isSignOut: Bool) -> Fleet {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        store.isDown = true
        let change = isSignOut ? fleet.signOut(0) : fleet.signIn(0, with: .granted("second"))
        #expect(change?.storeFailure != nil && fleet.record?.token?.value == "first")
        return fleet
    }

    private func drain(_ fleet: Fleet, within limit: Duration = .seconds(10)) -> Stage.Player<DrainResult> {
        fleet.stage.start { [service = fleet.services[0]] in await service.drain(within: limit) }
    }

    @Test(arguments: [true, false])
    func `50: drain writes a sign-in or a sign-out that the record lacks as soon as the store can`(isSignOut: Bool) {
        let fleet = pending(isSignOut), end = drain(fleet)
        fleet.advance(by: .seconds(1))
        #expect(!end.isDone)
        store.isDown = false
        fleet.advance(by: .seconds(1))
        #expect(end.value?.isComplete == true)
        #expect(fleet.record?.token?.value == (isSignOut ? nil : "second"))
    }

    @Test(arguments: [true, false])
    func `50: drain names a sign-in or a sign-out that the record lacks when its limit passes`(isSignOut: Bool) throws {
        let fleet = pending(isSignOut), end = drain(fleet)
        fleet.advance(by: .seconds(10))
        let result = try #require(end.value)
        #expect(result.hasEnded && result.unsaved.map(\.token?.value) == [isSignOut ? nil : "second"])
        #expect(result.unsaved.first?.error?.underlying is OddSharedStore.Down)
    }

    @Test func `50: a hit writes a sign-in that the record lacks after a pause, and retryNow at once`() {
        for retries in [true, false] {
            let fleet = pending(false)
            store.isDown = false
            if retries {
                fleet.stage.start { [service = fleet.services[0]] in await service.retryNow() }
                fleet.stage.run()
            } else {
                fleet.advance(by: .milliseconds(999))
                #expect(fleet.call(0).value?.value == "second" && fleet.record?.token?.value == "first")
                fleet.advance(by: .milliseconds(1))
                #expect(fleet.call(0).value?.value == "second")
            }
            #expect(fleet.record?.token?.value == "second")
        }
    }

    @Test func `50: drain is complete if a load has written the sign-in, or if another user's has overtaken it`() throws {
        let fleet = pending(false)
        store.isDown = false
        fleet.stage.start { [service = fleet.services[0]] in await service.invalidate(.granted("second")) }
        _ = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("third"))
        #expect(drain(fleet).value?.isComplete == true && fleet.record?.token?.value == "third")
        let other = pending(false)
        store.isDown = false
        _ = other.signOut(1)
        _ = other.signIn(1, with: .granted("theirs"))
        #expect(drain(other).value?.isComplete == true && other.record?.token?.value == "theirs")
        #expect(other.discarded.entries.contains("second superseded"))
    }

    @Test func `a grant replaced by a sign-in is handed over once, however many fences follow before the store answers`() {
        var first = SharedFence(StoredToken(.granted("first"), received: .distantPast), number: 1, owner: "me", after: nil)
        var record = GrantRecord(write: "theirs", generation: 1, token: .granted("theirs"))
        first.noteAttempt(over: record)
        var second = SharedFence(nil, number: 2, owner: "me", after: first)
        guard case .write(let written) = first.verdict(on: record, wall: nil) else { return #expect(Bool(false)) }
        record = written
        guard case .settled(let displaced) = first.verdict(on: record, wall: nil) else { return #expect(Bool(false)) }
        #expect(displaced.map(\.token.value) == ["theirs"])
        #expect(second.displaced(in: record).map(\.token.value) == ["theirs", "first"])
        second.followsSettled()
        #expect(second.displaced(in: record).map(\.token.value) == ["first"])
    }

    @Test func `a grant that a sign-in replaces counts as replaced, not signed out, once the earlier sign-out is settled`() {
        let signOut = SharedFence(nil, number: 1, owner: "me", after: nil)
        var signIn = SharedFence(StoredToken(.granted("mine"), received: .distantPast), number: 2, owner: "me", after: signOut)
        let record = GrantRecord(write: "theirs", generation: 2, token: .granted("theirs"))
        #expect(signIn.displaced(in: record).map(\.reason) == [.signedOut])
        signIn.followsSettled()
        #expect(signIn.displaced(in: record).map(\.reason) == [.replaced])
    }

    /// Lets a caller ask again and again although the store no longer answers; each read takes its limit of 5 s.
    private func ask(_ times: Int, _ fleet: Fleet) {
        for _ in 0..<times {
            _ = fleet.stage.start { [service = fleet.services[0]] in await service.retryNow() }
            _ = fleet.call(0)
            fleet.advance(by: .seconds(5))
        }
    }

    @Test func `46: a store that doesn't answer gets at most sixteen operations in two minutes, and more after a sign-out`()
        throws
    {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3550))
        store.hold()
        let before = store.log.entries.count
        ask(24, fleet)
        #expect(store.log.entries.count == before + 16)
        ask(24, fleet)
        #expect(store.log.entries.count == before + 32, "those of two minutes ago are forgotten")
        _ = fleet.signOut(0)
        #expect(store.log.entries.count == before + 33, "it is asked to hear of the sign-out")
    }

    @Test func `a store that doesn't answer gets at most sixteen operations, and more once it answers`() throws {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("first"))
        fleet.advance(by: .seconds(3550))
        store.hold()
        let before = store.log.entries.count
        ask(20, fleet)
        #expect(store.log.entries.count == before + 16)
        store.release()
        fleet.stage.run()
        fleet.advance(by: .seconds(600))
        _ = fleet.call(0)
        #expect(try fleet.load(0).previous?.value == "first")
    }

    @Test func `a sign-out whose first answer was lost doesn't undo another service's later sign-in`() throws {
        let fleet = fleet()
        _ = fleet.signIn(1, with: .granted("theirs"))
        store.next(.losesAnswer)
        store.isDown = false
        let change = fleet.signOut(0)
        #expect(change?.storeFailure == nil && change?.discarded.map(\.value) == ["theirs"])
        _ = fleet.signIn(1, with: .granted("later"))
        #expect(fleet.call(0).value?.value == "later")
    }

    @Test func `a grant replaced by a sign-in is handed over once, even if a sign-out comes before its lost answer is settled`() {
        let fleet = fleet()
        _ = fleet.signIn(1, with: .granted("theirs"))
        store.next(.losesAnswer)
        store.hold()
        let signIn = fleet.stage.start { [service = fleet.services[0]] in await service.replace(with: .granted("mine")) }
        // The sign-in is written, its answer is lost, and its next look has to wait.
        store.release()
        store.hold()
        fleet.stage.run()
        #expect(fleet.record?.token?.value == "mine")
        let signOut = fleet.stage.start { [service = fleet.services[0]] in await service.reset() }
        store.release()
        fleet.stage.run()
        #expect(fleet.record?.isTombstone == true)
        let returned = [signIn.value, signOut.value].compactMap { $0 }.flatMap { change in
            change.discarded.map { "\($0.value)" }
        }
        #expect(fleet.discarded.entries.sorted() == ["mine signedOut", "theirs replaced"], "returned: \(returned)")
    }

    @Test(arguments: [true, false])
    func `34: a fence that never reached the store undoes no later change of user`(isSignOut: Bool) {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(1).value?.value == "anna")
        store.isDown = true
        let change = isSignOut ? fleet.signOut(1) : fleet.signIn(1, with: .granted("anna's next"))
        #expect(change?.storeFailure != nil)
        store.isDown = false
        _ = fleet.signOut(0)
        _ = fleet.signIn(0, with: .granted("ben"))
        fleet.stage.start { [service = fleet.services[1]] in await service.invalidate(.granted("anna's next")) }
        fleet.stage.run()
        // After its own sign-out there is no session to end.
        if !isSignOut { #expect(fleet.call(1).code == .reset) }
        #expect(fleet.record?.token?.value == "ben" && fleet.call(1).value?.value == "ben")
        #expect(fleet.discarded.entries.contains("anna's next superseded") != isSignOut)
        #expect(!fleet.discarded.entries.contains { $0.hasPrefix("ben") })
    }

    @Test func `34: a sign-out that reaches the store late ends its session, even if another service has renewed that`() {
        let fleet = fleet()
        _ = fleet.signIn(0, with: .granted("anna"))
        #expect(fleet.call(1).value?.value == "anna")
        store.isDown = true
        _ = fleet.signOut(1)
        store.isDown = false
        _ = fleet.signIn(0, with: .granted("anna's next"))
        _ = fleet.call(1)
        #expect(fleet.record?.isTombstone == true)
    }

    @Test func `34: a sign-in that is followed by another one while the store is late is handed over once`() {
        let clock = ManualClock(), stage = Stage(), memory = InMemorySharedTokenStore(), discarded = Log<String>()
        let service = TokenService(
            sharedStore: SlowSwapStore(store: memory, clock: clock), environment: .driven(by: stage, clock: clock, seed: 1),
            onDiscard: { discarded.append($0.token.value) }, loader: ScriptedLoader())
        stage.start {
            await service.replace(with: .granted("first"))
            _ = await service.reset()
            await service.replace(with: .granted("second"))
            await service.replace(with: .granted("third"))
        }
        for _ in 0..<30 {
            clock.advance(by: .seconds(1))
            stage.run()
        }
        #expect(discarded.entries == ["first", "second"])
    }
}
