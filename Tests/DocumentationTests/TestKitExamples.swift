import AccessTokens
import AccessTokensTesting
import Testing

@Suite("The test kit's examples")
struct TestKitExamples {
    @Test func `a scripted load answers`() async throws {
        let clock = ManualClock()
        let loader = ScriptedLoader()
        let service = TokenService(environment: .init(clock: clock), loader: loader)
        async let token = service.retrieveToken()
        let call = try await loader.nextCall()  // the load has begun
        call.succeed(with: AccessToken("first", lifetime: .seconds(3600)))
        #expect(try await token.value == "first")
    }
}
