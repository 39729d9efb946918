import AccessTokensTesting
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import AccessTokens
@testable import AccessTokensSharing

/// A store in memory whose operations with given numbers fail.
private final class NumberedStore: SharedTokenStore {
    enum Fault: CaseIterable, Sendable {
        /// Nothing is done, and the caller gets an error.
        case fails
        /// The operation is done, but the caller gets an error.
        case losesAnswer
        /// The operation takes effect at ``land()``, if it still can; until then it seems to have failed.
        case isLate
    }

    struct Down: Error {}

    let memory = InMemorySharedTokenStore()
    private let faults: [Int: Fault]
    private let state = Lock((operations: 0, late: [(bytes: Data, revision: SharedRecord.Revision?)]()))

    init(_ faults: [Int: Fault]) {
        self.faults = faults
    }

    private func nextFault() -> Fault? {
        state.withLock { state in
            state.operations += 1
            return faults[state.operations]
        }
    }

    @concurrent func load() async throws -> SharedRecord? {
        if nextFault() != nil { throw Down() }
        return await memory.load()
    }

    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        let fault = nextFault()
        if fault == .isLate { state.withLock { $0.late.append((bytes, revision)) } }
        if fault == .fails || fault == .isLate { throw Down() }
        let swap = await memory.swap(bytes, ifAt: revision)
        if fault == .losesAnswer { throw Down() }
        return swap
    }

    @concurrent func changedRecord(from revision: SharedRecord.Revision?, atMost limit: Duration) async throws -> SharedRecord? {
        try await memory.changedRecord(from: revision, atMost: limit)
    }

    func land() async {
        for swap in state.withLock({ $0.late }) { _ = await memory.swap(swap.bytes, ifAt: swap.revision) }
    }
}

/// Two services at a strict server, from a sign-in through two expiries to a sign-out.
private final class Life {
    let store: NumberedStore
    let fleet: Fleet
    private var live = "1's grant"
    private var issued = 1
    private(set) var problems: [String] = []

    init(_ faults: [Int: NumberedStore.Fault]) {
        let store = NumberedStore(faults)
        self.store = store
        fleet = Fleet(store: { _ in store })
    }

    private var record: GrantRecord? { store.memory.contents.flatMap { try? GrantRecordFormat.decode($0.bytes) } }

    /// Answers the services' requests to the server.
    private func serve(isSignedOut: Bool = false) {
        for _ in 0..<8 {
            for index in fleet.services.indices {
                while let load = try? fleet.load(index) {
                    let spent = load.previous?.refreshToken
                    if isSignedOut, spent != nil { problems.append("\(index) presents \(spent ?? "") after the sign-out") }
                    if !isSignedOut, spent != live { problems.append("\(index) presents \(spent ?? "nothing"), not \(live)") }
                    guard spent == live else {
                        fleet.fail(load, with: ScriptedFailure.grantRefused)
                        continue
                    }
                    issued += 1
                    live = "\(issued)'s grant"
                    fleet.succeed(load, with: .granted("\(issued)"))
                }
            }
        }
    }

    /// Asks until a service has a token, for as long as marks and pauses may last.
    private func value(_ index: Int) -> AccessToken? {
        for _ in 0..<20 {
            let caller = fleet.call(index)
            serve()
            if let token = caller.value { return token }
            fleet.advance(by: .seconds(15))
            serve()
            if let token = caller.value { return token }
        }
        return nil
    }

    func run() {
        _ = fleet.signIn(0, with: .granted("1"))
        for index in [0, 1, 1, 0] {
            fleet.advance(by: .seconds(3550))
            // Only its own service knows about a sign-in that couldn't be saved, and saves it before its next load.
            let index = record == nil ? 0 : index
            if value(index) == nil { problems.append("the session doesn't go on at \(index), with \(issued)") }
        }
        fleet.stage.start { [store] in await store.land() }
        fleet.stage.run()
        for index in [0, 1] where value(index) == nil { problems.append("the session is over at \(index)") }
        fleet.advance(by: .seconds(130))
        if let mark = record?.mark { problems.append("a mark is left: \(mark)") }
        let change = fleet.signOut(1)
        if change == nil { problems.append("the sign-out doesn't return") }
        for index in [1, 0] {
            fleet.advance(by: .seconds(3550))
            for _ in 0..<2 {
                let caller = fleet.call(index)
                serve(isSignedOut: true)
                if let token = caller.value { problems.append("\(index) gets \(token.value) after the sign-out") }
                fleet.advance(by: .seconds(61))
            }
        }
        if record?.isTombstone != true { problems.append("the record has a token after the sign-out") }
    }
}

@Suite("A store that fails")
struct FailingOnceTests {
    /// More operations than there are without a fault.
    private static let operations = 1...40

    @Test(arguments: NumberedStore.Fault.allCases)
    fileprivate func `whichever one operation goes wrong, the session goes on, no token is spent twice, and the sign-out holds`(
        fault: NumberedStore.Fault
    ) {
        for number in Self.operations {
            let life = Life([number: fault])
            life.run()
            #expect(life.problems.isEmpty, "operation \(number)")
        }
    }

    @Test(.thorough, arguments: NumberedStore.Fault.allCases, NumberedStore.Fault.allCases)
    fileprivate func `whichever two operations go wrong, the session goes on, no token is spent twice, and the sign-out holds`(
        first: NumberedStore.Fault, second: NumberedStore.Fault
    ) {
        for number in Self.operations {
            for other in Self.operations where other > number {
                let life = Life([number: first, other: second])
                life.run()
                #expect(life.problems.isEmpty, "operations \(number) and \(other)")
            }
        }
    }
}
