import AccessTokens
import AccessTokensTesting
import Testing

/// Cases of other libraries' suites, in our words, that need a minimum lifetime, a forced load or the time that is left.
@Suite("What other libraries' suites demand of a call's wishes") struct PeersDemandTests {
    private func ask(
        _ scene: Scene, _ call: @escaping @Sendable (TokenService) async throws -> AccessToken
    ) -> Scene.Caller {
        scene.stage.start { [service = scene.service] in try await call(service) }
    }

    // okta-mobile-swift, CredentialRefreshTests: testRefreshIfNeeded{WithinGraceInterval, OutsideGraceInterval, Expired}.
    @Test(arguments: [(0, false), (3_299, false), (3_301, true), (6_000, true)])
    func `a token is refreshed only if less than a grace interval is left`(age: Int, isRefreshed: Bool) throws {
        let scene = try Scene.holding(.hour("old"), policy: RefreshPolicy(maximumRefreshWindow: .zero))
        scene.advance(by: .seconds(age))
        let caller = ask(scene) { try await $0.retrieveToken(validFor: .seconds(300)) }
        if isRefreshed { try scene.deliver(.hour("new")) }
        #expect(caller.value?.value == (isRefreshed ? "new" : "old") && scene.loader.loadCount == (isRefreshed ? 2 : 1))
    }

    // okta-mobile-swift, CredentialRefreshTests: testRotatingRefreshTokens.
    @Test func `refreshes one after another present each the refresh token of the one before`() throws {
        let scene = try Scene.holding(.granted("0"))
        for number in 1...3 {
            let caller = ask(scene) { try await $0.reloadToken() }
            let load = try scene.load()
            #expect(load.previous?.refreshToken == "\(number - 1)'s grant")
            scene.succeed(load, with: .granted("\(number)"))
            #expect(caller.value?.refreshToken == "\(number)'s grant")
        }
    }

    // okta-mobile-swift, CredentialRefreshTests: testRefreshFailed; MSAL's forceRefresh, which never answers from the cache.
    @Test func `a forced refresh that fails is an error for its caller alone`() throws {
        let scene = try Scene.holding(.hour("a")), events = scene.service.events()
        let forced = ask(scene) { try await $0.reloadToken() }, plain = scene.call()
        scene.fail(try scene.load())
        #expect(forced.code == .loadFailed && plain.value?.value == "a" && scene.service.cachedToken?.value == "a")
        #expect(scene.told(by: events).last?.name == .refreshFailed)
    }

    // auth0/Auth0.swift#399: there the call fails if the renewed token is too short as well, and each call renews it again.
    @Test func `a minimum beyond the lifetime gets a new token and its time, and the next such call costs no load`() throws {
        let scene = try Scene.holding(.hour("a"), policy: RefreshPolicy(maximumRefreshWindow: .zero))
        scene.advance(by: .seconds(2_000))
        let caller = ask(scene) { try await $0.retrieveToken(validFor: .seconds(86_400)) }
        let token = try scene.deliver(.hour("b"))
        #expect(caller.value?.value == "b" && scene.service.timeLeft(of: token) == .seconds(3_600))
        for _ in 1...100 {
            #expect(ask(scene) { try await $0.retrieveToken(validFor: .seconds(86_400)) }.value?.value == "b")
        }
        #expect(scene.loader.loadCount == 2)
    }

    // auth0/auth0-flutter#299 asks for both.
    @Test func `a program renews a token whatever is left of it, and reads how much that is`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(1))
        #expect(scene.service.timeLeft(of: .hour("a")) == .seconds(3_599))
        let caller = ask(scene) { try await $0.reloadToken() }
        try scene.deliver(.hour("b"))
        #expect(caller.value?.value == "b" && scene.service.timeLeft(of: .hour("a")) == .zero)
    }

    // AppAuth, OIDAuthState: setNeedsTokenRefresh, then performAction, many at once.
    @Test func `of a thousand forced refreshes the first is one request, and those that came during it are another`() throws {
        let scene = try Scene.holding(.granted("a"))
        let callers = (1...1_000).map { _ in ask(scene) { try await $0.reloadToken() } }
        try scene.deliver(.granted("b"))
        #expect(callers.map { $0.value?.value } == ["b"] + Array(repeating: nil, count: 999))
        try scene.deliver(.granted("c"))
        #expect(callers.dropFirst().allSatisfy { $0.value?.value == "c" } && scene.loader.loadCount == 3)
    }

    // oidc-client-ts, AccessTokenEvents: load sets the timers for the new token, unload clears them.
    @Test func `the time that is left follows each new token, and there is none after a sign-out`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.replace(with: AccessToken("b", lifetime: .seconds(60)))
        scene.advance(by: .seconds(10))
        #expect(scene.service.timeLeft(of: AccessToken("b")) == .seconds(50))
        _ = scene.signOut()
        #expect(scene.service.timeLeft(of: AccessToken("b")) == .zero)
    }
}
