import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// With the default limits an operation of the store is considered lost 95 s after it began: three times 30 s after its limit of
/// 5 s.
@Suite("Guarantee 46: no number of lost callbacks of a store locks a service")
struct LostStoreTests {
    /// A store that loses its callbacks when the test says so.
    private final class LosingStore: TokenStore {
        private struct State {
            var contents: StoredToken?
            var log: [String] = []
            var loses = false, losesLoads = true
            var lost: [SingleResult<Void>] = []
        }

        private let state: Lock<State>

        init(_ contents: StoredToken? = nil) { state = Lock(State(contents: contents)) }

        var contents: AccessToken? { state.withLock { $0.contents?.token } }
        var log: [String] { state.withLock { $0.log } }

        /// Makes operations that begin from now on never end; the parameter says whether that includes loads.
        func lose(loads: Bool = true) { state.withLock { ($0.loses, $0.losesLoads) = (true, loads) } }

        /// Lets operations that begin from now on end.
        func work() { state.withLock { $0.loses = false } }

        /// Lets the lost operations take effect and end.
        func find() { for gate in state.withLock({ $0.lost }) { gate.complete(with: .success(())) } }

        private func begin(_ entry: String) async throws {
            let gate = SingleResult<Void>()
            let isLost = state.withLock { state in
                state.log.append(entry)
                let isLost = state.loses && (state.losesLoads || entry != "load")
                if isLost { state.lost.append(gate) }
                return isLost
            }
            if isLost { try await gate.value() }
        }

        @concurrent func load() async throws -> StoredToken? {
            try await begin("load")
            return state.withLock { $0.contents }
        }

        @concurrent func save(_ token: StoredToken) async throws {
            try await begin("save \(token.token.value)")
            state.withLock { $0.contents = token }
        }

        @concurrent func remove() async throws {
            try await begin("remove")
            state.withLock { $0.contents = nil }
        }
    }

    private static func stored(_ token: AccessToken) -> StoredToken {
        StoredToken(token, received: Date(timeIntervalSince1970: 0))
    }

    @Test func `46: drain saves at once again what a save that never ended should have saved`() throws {
        let store = LosingStore(), scene = Scene(store: store)
        store.lose(loads: false)
        _ = scene.call()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(5))
        scene.advance(by: .seconds(90))
        store.work()
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(8)) }
        scene.stage.run()
        #expect(end.value?.isComplete == true && store.contents?.value == "a")
    }

    @Test func `46: a restore that never ends is tried again, however often that happens`() {
        let store = LosingStore(Self.stored(.granted("a"))), scene = Scene(store: store)
        store.lose()
        for _ in 1...5 {
            let caller = scene.call()
            scene.advance(by: .seconds(5))
            #expect(caller.code == .storeFailed)
            scene.advance(by: .seconds(90) - .milliseconds(1))
            #expect(scene.call().code == .storeFailed)
            scene.advance(by: .milliseconds(1))
        }
        store.work()
        #expect(scene.call().value?.value == "a")
        #expect(store.log == Array(repeating: "load", count: 6) && scene.loader.loadCount == 0)
        store.find()
        scene.stage.run()
        #expect(scene.call().value?.value == "a")
    }

    @Test func `57: after a lost sign-in has been saved after all, another service's session is adopted, not given up`() {
        let store = LosingStore(), scene = Scene(isRepeatable: false, store: store)
        store.lose()
        _ = scene.signIn(with: .granted("a"))
        scene.advance(by: .seconds(95))
        store.work()
        store.find()
        scene.advance(by: .seconds(3_600))
        #expect(store.log == ["load", "save a"])
        let received = Date(timeIntervalSince1970: ManualClock().now.duration(to: scene.clock.now) / .seconds(1))
        _ = scene.stage.start { try await store.save(StoredToken(.granted("x"), received: received)) }
        #expect(scene.call().code == .reset)
        #expect(scene.call().value?.value == "x" && scene.loader.loadCount == 0 && scene.discards.isEmpty)
    }

    @Test func `46: a save that never ends delays a sign-out's removal only until it counts as lost, without any caller`() throws
    {
        let store = LosingStore(), scene = Scene(store: store)
        let caller = scene.call()
        store.lose()
        try scene.deliver(.granted("a"))
        scene.advance(by: .seconds(5))
        #expect(caller.value?.value == "a", "it is handed out unsaved")
        store.work()
        #expect(scene.signOut().value?.storeFailure?.code == .storeFailed)
        scene.advance(by: .seconds(90) - .milliseconds(1))
        #expect(store.log == ["load", "save a"])
        scene.advance(by: .milliseconds(1))
        #expect(store.log == ["load", "save a", "load", "remove"])
        #expect(scene.signIn(with: .hour("b")).value?.storeFailure == nil && store.contents?.value == "b")
    }

    @Test func `46: the next save is made, however many saves before it never ended`() throws {
        let store = LosingStore(), scene = Scene(store: store)
        store.lose()
        for round in 1...5 {
            scene.replace(with: .granted("\(round)"))
            scene.advance(by: .seconds(95))
        }
        store.work()
        #expect(scene.signIn(with: .granted("b")).value?.storeFailure == nil && store.contents?.value == "b")
    }

    @Test func `46: a save that counts as lost and ends after a removal doesn't get the last word`() throws {
        let store = LosingStore(), scene = Scene(store: store)
        store.lose()
        scene.replace(with: .granted("a"))
        scene.advance(by: .seconds(95))
        store.work()
        #expect(scene.signOut().value?.storeFailure == nil)
        store.find()
        scene.stage.run()
        #expect(store.contents == nil && store.log.suffix(3) == ["remove", "save a", "remove"])
    }

    @Test func `46: a removal that counts as lost doesn't undo a later save, which hands over the old grant`() throws {
        let store = LosingStore(Self.stored(.granted("old"))), scene = Scene(store: store)
        store.lose()
        scene.reset()
        scene.advance(by: .seconds(95))
        store.work()
        #expect(scene.signIn(with: .granted("b")).value?.storeFailure == nil)
        store.find()
        scene.stage.run()
        #expect(store.contents?.value == "b" && store.log.suffix(2) == ["remove", "save b"])
        #expect(scene.discards == ["old replaced"])
    }

    @Test func `6: a grant found by a removal that then counts as lost is handed over once`() {
        let store = LosingStore(Self.stored(.granted("a"))), scene = Scene(store: store)
        #expect(scene.call().value?.value == "a")
        store.lose(loads: false)
        scene.reset()
        scene.advance(by: .seconds(95))
        store.work()
        #expect(scene.signIn(with: .granted("b")).value?.discarded.isEmpty == true)
        store.find()
        scene.stage.run()
        #expect(scene.discards == ["a signedOut"])
    }

    @Test func `46: an operation that counts as lost but ends before the next write has done its work`() throws {
        let store = LosingStore(), scene = Scene(store: store)
        store.lose()
        scene.replace(with: .granted("a"))
        scene.advance(by: .seconds(95))
        store.work()
        store.find()
        scene.stage.run()
        #expect(store.contents?.value == "a")
        #expect(store.log.last == "save a")
    }

    @Test func `45: drain doesn't wait for a store operation that counts as lost`() throws {
        let store = LosingStore(), scene = Scene(store: store)
        store.lose()
        scene.replace(with: .granted("a"))
        scene.advance(by: .seconds(90))
        let end = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(8)) }
        #expect(!end.isDone)
        scene.advance(by: .seconds(5))
        let result = try #require(end.value)
        #expect(result.hasEnded && !result.isComplete && result.unsaved.map(\.token?.value) == ["a"])
    }
}
