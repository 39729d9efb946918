import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// Signing out while a one-time refresh token is being spent, which a reset can't undo.
extension RealServerTests {
    @Test func `a refresh that a sign-out overtakes before it is sent goes on, so that its grant can be revoked`() async throws {
        let transport = GatedTransport(keeping: .request)
        let before = try await server.refreshesIssued()
        let dropped = try await signOutMidRefresh(over: transport)
        #expect(try await server.refreshesIssued() == before + 1)
        #expect(try await !server.isGrantActive(of: dropped), "so the dropped refresh token was used up")
        try await expectRefusal(of: dropped)
        #expect(try await server.refreshesIssued() == before + 1)
    }

    @Test func `a refresh answered after a sign-out gives the program nothing of the late answer back`() async throws {
        let transport = GatedTransport(keeping: .answer)
        let before = try await server.refreshesIssued()
        let dropped = try await signOutMidRefresh(over: transport)
        #expect(try await server.refreshesIssued() == before + 1, "the server had answered")
        #expect(try await !server.isGrantActive(of: dropped), "so the dropped refresh token was used up")

        struct Late: Decodable { let refresh_token: String }
        let late = try JSONDecoder().decode(Late.self, from: try await transport.answer.value().body)
        #expect(late.refresh_token != dropped.refreshToken)
        try await server.endGrant(of: dropped)
        // Only this test has the late token. At this server, revoking its predecessor doesn't end it, although by RFC 7009 §2.1
        // the grant should end; using the predecessor again does (RFC 9700 §4.14.2).
        #expect(try await server.isActive(late.refresh_token, for: server.app))
        try await expectRefusal(of: dropped)
        #expect(try await !server.isActive(late.refresh_token, for: server.app))
        #expect(try await server.refreshesIssued() == before + 1)
    }

    /// Signs out while two thousand callers wait for a load that the transport holds, and then releases the load; returns the
    /// token that the reset gave up.
    private func signOutMidRefresh(over transport: GatedTransport) async throws -> AccessToken {
        let store = InMemoryTokenStore()
        let signedIn = try await server.signIn()
        let (dropped, events) = try await signOutMidRefresh(of: signedIn, in: store, over: transport)
        // Only the fenced load and the store's operations still retain the service, so they have ended when its events end.
        var names: [TokenEvent.Name] = []
        for await event in events { names.append(event.name) }
        let after = try #require(names.firstIndex(of: .reset))
        #expect(names[..<after].contains(.loadStarted))
        #expect(
            names[after...].allSatisfy { [.reset, .loadStarted, .loadFailed].contains($0) }, "no user is signed in: \(names)")
        #expect(store.contents == nil, "nothing is written back")
        #expect(dropped == signedIn)
        return dropped
    }

    private func signOutMidRefresh(
        of signedIn: AccessToken, in store: InMemoryTokenStore, over transport: GatedTransport
    ) async throws -> (dropped: AccessToken, events: AsyncStream<TokenEvent>) {
        let crowd = try refreshingCrowd(store: store, over: transport)
        await crowd.service.replace(with: signedIn)
        clock.advance(by: server.lifetime)
        let events = crowd.service.events()
        async let answers = crowd.ask()
        _ = await transport.arrivals.first { true }
        #expect(store.contents?.token == signedIn)

        let dropped = await crowd.service.reset().discarded.first
        #expect(crowd.service.cachedToken == nil && store.contents == nil)
        let errors = try await answers.serviceErrors
        #expect(errors.count == 2 * Crowd.size, "all are told while the load is still kept")
        #expect(errors.contains { $0.code == .reset })
        #expect(errors.allSatisfy { $0.code == .reset || $0.isNotSignedIn }, "later callers found no user signed in")

        transport.open()
        for await _ in transport.arrivals {}
        let later = try await crowd.ask().serviceErrors
        #expect(later.count == 2 * Crowd.size && later.allSatisfy(\.isNotSignedIn))
        #expect(crowd.service.cachedToken == nil && store.contents == nil)
        return (try #require(dropped), events)
    }

    /// Expects that the server treats a refresh token as ended.
    private func expectRefusal(of token: AccessToken) async throws {
        let loader = try server.refreshLoader()
        let error = await #expect(throws: OAuthError.self) { try await loader.loadToken(replacing: token) }
        #expect(error?.code == .refused && error?.status == 400)
    }
}

extension TokenServiceError {
    /// Whether there was no grant to load with, so that nothing was sent.
    fileprivate var isNotSignedIn: Bool {
        code == .loadFailed && remedy == .signIn && (underlying as? OAuthError)?.code == .notSignedIn
    }
}
