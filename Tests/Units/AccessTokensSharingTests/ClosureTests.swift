import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Testing

@Suite struct `A closure that loads a shared grant` {
    @Test func `gets the token that another service has loaded`() async throws {
        let store = InMemorySharedTokenStore()
        let service = { (name: String) in
            TokenService(sharedStore: store, environment: .init(clock: ManualClock())) { previous in
                AccessToken("\(previous?.value ?? "none")+\(name)", lifetime: .seconds(3600), refreshToken: "refresh")
            }
        }
        let (first, second) = (service("first"), service("second"))
        let token = try await first.retrieveToken()
        #expect(token.value == "none+first")
        #expect(try await second.retrieveToken().value == "none+first")
        await second.invalidate(token)
        #expect(try await second.retrieveToken().value == "none+first+second")
    }
}
