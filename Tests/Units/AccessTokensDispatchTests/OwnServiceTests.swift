import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Dispatch
import Foundation
import Testing

@Suite("A service that the shim makes for itself takes every parameter of a TokenService")
struct OwnServiceTests {
    private let stage = Stage(), clock = ManualClock(), queue = DispatchQueue(label: "test"), log = Log<String>()
    private let loader = ScriptedLoader()

    private func run() {
        for _ in 1...3 {
            stage.run()
            queue.sync {}
        }
    }

    private func call(_ service: AccessTokenService) {
        service.retrieveToken { [log] in log.append(ShimScene.text($0)) }
        run()
    }

    @Test func `the shim's own service uses the given policy, clock and executor`() {
        let service = AccessTokenService(
            loader: loader, queue: queue, policy: RefreshPolicy(loadTimeout: .seconds(3)),
            environment: .driven(by: stage, clock: clock))
        call(service)
        #expect(log.entries.isEmpty && loader.loadCount == 1)
        clock.advance(by: .seconds(3))
        run()
        #expect(log.entries == ["loadTimedOut"])
    }

    @Test func `the shim's own service uses the given store and onDiscard`() {
        let stored = AccessToken("stored", lifetime: .seconds(3600), refreshToken: "refresh")
        let now = Date(timeIntervalSince1970: 0), discarded = Log<String>()
        let store = ScriptedStore(StoredToken(stored, received: now))
        let service = AccessTokenService(
            loader: loader, queue: queue, store: store,
            environment: .driven(by: stage, clock: clock, wallClock: { now }),
            onDiscard: { discarded.append("\($0.token.value) \($0.reason)") })
        call(service)
        #expect(log.entries == ["stored"] && loader.loadCount == 0)
        service.reset { [log] in log.append("signed out, \($0.discarded.count) given up") }
        run()
        #expect(log.entries.last == "signed out, 1 given up" && store.contents == nil)
        #expect(discarded.entries == ["stored signedOut"])
    }
}
