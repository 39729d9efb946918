import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import TestBudgets
import Testing

// The Swift blocks of the test kit's landing page, unchanged, and run.

@Suite(.inRealTime) struct `The test kit's examples` {
    @Test func `a scripted load answers its caller`() async throws {
        let clock = ManualClock()
        let loader = ScriptedLoader()
        let service = TokenService(
            environment: .init(clock: clock), loader: loader)

        async let token = service.retrieveToken()
        let call = try await loader.nextCall()  // the load has begun
        call.succeed(with: AccessToken("first", lifetime: .seconds(3600)))
        #expect(try await token.value == "first")
    }

    @Test func `a caller on a stage waits for a slow store, and for its limit`() async throws {
        let stage = Stage()
        let clock = ManualClock()
        let loader = ScriptedLoader()
        let store = ScriptedStore()
        let service = TokenService(
            store: store, environment: .driven(by: stage, clock: clock),
            loader: loader)

        let caller = stage.start { try await service.retrieveToken() }
        let call = try await loader.nextCall()  // the store was empty
        store.hold()  // the disk is slow
        call.succeed(with: AccessToken("first", lifetime: .seconds(3600)))
        stage.run()
        #expect(!caller.isDone)  // a token is saved before any caller receives it

        store.release()
        stage.run()
        #expect(caller.value?.value == "first")
        #expect(store.log == ["load", "save first"])

        clock.advance(by: .seconds(3600))  // the token expires
        let late = stage.start {
            try await service.retrieveToken(within: .seconds(5))
        }
        // Its limit passes, and the server is silent.
        clock.advance(by: .seconds(5))
        stage.run()
        #expect((late.error as? TokenServiceError)?.code == .deadlineExceeded)
    }

    @Test func `two services share a grant in a store that loses an answer`() async throws {
        let stage = Stage()
        let clock = ManualClock()
        let server = SimulatedAuthorizationServer(
            clock: clock, rotatesRefreshTokens: true)
        let store = SimulatedSharedStore(clock: clock)
        let services = (1...2).map { _ in
            TokenService(
                sharedStore: store, environment: .driven(by: stage, clock: clock),
                loader: server.loader)
        }
        let signIn = stage.start {
            await services[0].replace(with: server.signIn())
        }
        #expect(signIn.isDone)

        clock.advance(by: .seconds(3600))  // the token expires
        // The mark is written, but the service gets an error.
        store.loseNextResponses()
        let callers = services.map { service in
            stage.start { try await service.retrieveToken() }
        }
        stage.run()
        #expect(callers.allSatisfy { $0.value?.value == "access-2" })
        #expect(server.refreshes == 1 && server.reuseDetected == 0)
    }
}
