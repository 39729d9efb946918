import AccessTokens
import AccessTokensTesting
import Foundation
import TokenServiceConcurrency
import Testing

@Suite("Guarantee 43: a refused request keeps its user")
struct RefusedRequestTests {
    private let scene: Scene

    init() throws {
        scene = try Scene.holding(.granted("anna"))
    }

    private func retry(_ refused: AccessToken, within limit: Duration? = nil) -> Scene.Caller {
        scene.stage.start { [service = scene.service] in
            try await service.retrieveToken(insteadOf: refused, within: limit)
        }
    }

    @Test func `43: a refused request of an earlier user gets the reset error, and the next user keeps the token`() throws {
        scene.reset()
        scene.replace(with: .hour("ben"))
        #expect(retry(.hour("anna")).code == .reset)
        #expect(scene.service.cachedToken?.value == "ben" && scene.loader.loadCount == 1)
    }

    @Test func `43: a refused request starts no load after a sign-out that no sign-in followed`() throws {
        scene.reset()
        #expect(retry(.hour("anna")).code == .reset)
        #expect(scene.loader.loadCount == 1)
    }

    @Test
    func `43: only the error of a refused request, not that of a caller waiting at a sign-out, names a refused token`() {
        let scene = Scene(), waiting = scene.call()
        scene.reset()
        #expect(
            (waiting.error as? TokenServiceError)?.description
                == "The session of this call has ended: the user has signed out since. Don't repeat the call for the next user.")
        let refused = self.scene.stage.start { [service = self.scene.service] in
            try await service.retrieveToken(insteadOf: AccessToken("another service's"))
        }
        #expect(
            (refused.error as? TokenServiceError)?.description
                == "The refused token is of a session that has ended, or another service handed it out. Don't repeat the request "
                + "for the next user.")
    }

    @Test(arguments: [1, 20])
    func `43: requests refused with one token cause one load, with that session's grant, and get the new token`(requests: Int)
        throws
    {
        // The text of a header is enough.
        let callers = (0..<requests).map { _ in retry(AccessToken("anna")) }
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "anna's grant")
        scene.succeed(load, with: .hour("anna 2"))
        #expect(callers.allSatisfy { $0.value?.value == "anna 2" })
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `43: a stored token that was handed out inside its leeway is the session's, and is dropped when it is refused`()
        throws
    {
        let stored = StoredToken(.granted("stored"), received: Date(timeIntervalSince1970: -3_550))
        let scene = Scene(store: ScriptedStore(stored)), first = scene.call()
        scene.fail(try scene.load())
        #expect(first.value?.value == "stored")
        let again = scene.stage.start { [service = scene.service] in
            try await service.retrieveToken(insteadOf: AccessToken("stored"))
        }
        #expect(again.code != .reset && scene.service.cachedToken == nil)
        scene.advance(by: .seconds(2))
        let next = scene.call()
        try scene.deliver(.granted("next"))
        #expect(next.value?.value == "next")
    }

    @Test func `43: a late refusal of the session's older token is answered with the current one at once`() throws {
        _ = retry(.hour("anna"))
        try scene.deliver(.hour("anna 2"))
        #expect(retry(.hour("anna"), within: .zero).value?.value == "anna 2")
        scene.replace(with: .hour("anna 3"))
        #expect(retry(.hour("anna 2")).value?.value == "anna 3", "more consent is the same user")
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `43: a reset ends the wait of a refused request, whatever token comes after it`() throws {
        let caller = retry(.hour("anna"))
        scene.reset()
        scene.replace(with: .hour("ben"))
        #expect(caller.code == .reset)
    }

    @Test func `43: a refusal of a token that the service never handed out drops nothing`() throws {
        #expect(retry(.hour("somebody's")).code == .reset)
        #expect(scene.service.cachedToken?.value == "anna")
    }

    @Test func `43: a token that was restored or passed to replace belongs to the session`() throws {
        let store = InMemoryTokenStore(StoredToken(.hour("stored"), received: .distantFuture))
        let scene = Scene(store: store)
        #expect(scene.call().value?.value == "stored")
        let caller = scene.stage.start { [service = scene.service] in
            try await service.retrieveToken(insteadOf: AccessToken("stored"))
        }
        try scene.deliver(.hour("next"))
        #expect(caller.value?.value == "next")
        scene.reset()
        scene.replace(with: .hour("given"))
        _ = scene.stage.start { [service = scene.service] in try await service.retrieveToken(insteadOf: AccessToken("given")) }
        #expect(try scene.load().previous?.value == "given")
    }

    @Test(arguments: [false, true])
    func `43: a token passed to replace only as a grant belongs to the session, also while it is saved`(isSaving: Bool) throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        if isSaving { store.hold() }
        scene.replace(with: isSaving ? .granted("given") : AccessToken("given", lifetime: .zero, refreshToken: "given's grant"))
        let caller = scene.stage.start { [service = scene.service] in
            try await service.retrieveToken(insteadOf: AccessToken("given"))
        }
        scene.release(store)
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "given's grant")
        scene.succeed(load, with: .hour("next"))
        #expect(caller.value?.value == "next")
    }

    /// The program keeps a credential of its own between its runs, and the server refuses it before anything else happens.
    @Test(arguments: [3_600, 10])
    func `43: the store's token belongs to the session before the service has read it`(lifetime: Int) throws {
        let stored = AccessToken("stored", lifetime: .seconds(lifetime), refreshToken: "stored's grant")
        let scene = Scene(store: ScriptedStore(StoredToken(stored, received: Date(timeIntervalSince1970: -20))))
        let caller = scene.stage.start { [service = scene.service] in
            try await service.retrieveToken(insteadOf: AccessToken("stored"))
        }
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "stored's grant")
        scene.succeed(load, with: .hour("next"))
        #expect(caller.value?.value == "next" && scene.loader.loadCount == 1)
    }

    @Test func `43: a refused token that isn't the store's belongs to another session, and its refusal drops nothing`() throws {
        let scene = Scene(store: ScriptedStore(StoredToken(.hour("stored"), received: Date(timeIntervalSince1970: 0))))
        let caller = scene.stage.start { [service = scene.service] in
            try await service.retrieveToken(insteadOf: AccessToken("somebody's"))
        }
        #expect(caller.code == .reset && scene.service.cachedToken?.value == "stored" && scene.loader.loadCount == 0)
    }

    @Test func `43: the service remembers the session's last 64 tokens`() throws {
        for number in 1...63 { scene.replace(with: .hour("\(number)")) }
        #expect(retry(.hour("anna")).value?.value == "63")
        scene.replace(with: .hour("64"))
        #expect(retry(.hour("anna")).code == .reset)
        #expect(retry(.hour("1")).value?.value == "64")
    }

    @Test func `a refused request's limit and cancellation end only that request's wait, and its token is dropped`() throws {
        #expect(retry(.hour("anna"), within: .zero).code == .deadlineExceeded)
        #expect(scene.service.cachedToken == nil && scene.loader.loadCount == 1)
        let caller = retry(.hour("anna"), within: .seconds(5))
        scene.advance(by: .seconds(5))
        #expect(caller.code == .deadlineExceeded)
        let cancelled = retry(.hour("anna"))
        cancelled.cancel()
        scene.stage.run()
        #expect(cancelled.error is CancellationError)
        try scene.deliver(.hour("anna 2"))
        #expect(scene.service.cachedToken?.value == "anna 2")
    }
}
