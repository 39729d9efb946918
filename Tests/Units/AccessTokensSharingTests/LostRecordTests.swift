import AccessTokensTesting
import Foundation
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("A shared record that was removed, or is an older one")
struct LostRecordTests {
    /// Returns a service that has a record's session and an expired token, with its store.
    private func fleet(isRepeatable: Bool = false) async throws -> (Fleet, older: Data) {
        let fleet = Fleet(isRepeatable: isRepeatable)
        _ = fleet.signIn(0, with: .granted("first"))
        let older = try #require(fleet.memory.contents?.bytes)
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("second"))
        return (fleet, older)
    }

    private func put(_ bytes: Data, in fleet: Fleet) async {
        _ = await fleet.memory.swap(bytes, ifAt: fleet.memory.contents?.revision)
    }

    @Test func `a service whose record was removed reports that, and presents nothing`() async throws {
        let (fleet, _) = try await fleet()
        await put(Data(), in: fleet)
        #expect(fleet.call(0).value?.value == "second", "a token that is good is handed out")
        fleet.advance(by: .seconds(3550))
        let error = try #require(fleet.call(0).error as? TokenServiceError)
        #expect(error.code == .storeFailed && error.remedy == .signIn)
        #expect("\(error)".contains("The shared store's record was removed"))
        #expect(fleet.loaders[0].loadCount == 1)
    }

    @Test func `a sign-in after a removal ends the sessions that knew the old record, and is adopted`() async throws {
        let (fleet, _) = try await fleet()
        await put(Data(), in: fleet)
        fleet.advance(by: .seconds(3550))
        _ = fleet.call(0)
        _ = fleet.signIn(1, with: .granted("third"))
        fleet.advance(by: .seconds(1))
        #expect(fleet.call(0).code == .reset, "it may be another user's")
        #expect(fleet.call(0).value?.value == "third")
    }

    @Test func `an older record isn't adopted in place of a newer one, and its refresh token is not presented`() async throws {
        let (fleet, older) = try await fleet()
        fleet.advance(by: .seconds(3550))
        await put(older, in: fleet)
        let error = try #require(fleet.call(0).error as? TokenServiceError)
        #expect(error.remedy == .signIn)
        #expect(fleet.loaders[0].loadCount == 1)
        let change = fleet.signIn(0, with: .granted("third"))
        #expect(change?.storeFailure == nil)
        #expect(fleet.record?.generation == 7_100_000_000)
        #expect(fleet.call(1).value?.value == "third")
    }

    @Test func `a lost tombstone brings no old token back`() async throws {
        let (fleet, older) = try await fleet()
        _ = fleet.signOut(0)
        await put(older, in: fleet)
        #expect(fleet.call(0).code == .storeFailed)
        #expect(fleet.loaders[0].loadCount == 1)
    }

    @Test func `a repeatable load goes on after its record was removed`() async throws {
        let (fleet, _) = try await fleet(isRepeatable: true)
        await put(Data(), in: fleet)
        fleet.advance(by: .seconds(3550))
        let caller = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .hour("third"))
        #expect(caller.value?.value == "third")
        #expect(fleet.record?.generation == 7_100_000_001)
    }

    @Test func `a mark in place of a removed record isn't taken for a sign-out`() async throws {
        let (fleet, _) = try await fleet(isRepeatable: true)
        await put(Data(), in: fleet)
        fleet.advance(by: .seconds(3595))
        let first = fleet.call(0)
        fleet.fail(try fleet.load(0), with: ScriptedFailure.transient)
        #expect(first.code == .loadFailed)
        fleet.advance(by: .seconds(120))
        let second = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .hour("third"))
        #expect(second.value?.value == "third")
    }

    @Test func `an empty record counts as absent`() async throws {
        let fleet = Fleet()
        await put(Data(), in: fleet)
        let caller = fleet.call(0)
        fleet.succeed(try fleet.load(0), with: .granted("first"))
        #expect(caller.value?.value == "first")
        #expect(fleet.call(1).value?.value == "first")
    }
}
