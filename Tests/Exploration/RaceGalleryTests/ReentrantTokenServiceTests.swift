import AccessTokens
import AccessTokensTesting
import RaceGallery
import Testing

@Suite struct `The naive actor` {
    let clock = ManualClock()
    let loader = ScriptedLoader()
    let stage = Stage()

    @Test func `the naive actor hands over a valid token without a load, until its lifetime has passed`() async throws {
        let service = ReentrantTokenService(loader: loader, clock: clock)
        let first = stage.start { try await service.retrieveToken() }
        try await loader.nextCall().succeed(with: AccessToken("a", lifetime: .seconds(60)))
        stage.run()
        let second = stage.start { try await service.retrieveToken() }
        #expect([first.value?.value, second.value?.value] == ["a", "a"])
        clock.advance(by: .seconds(60))
        let third = stage.start { try await service.retrieveToken() }
        #expect(!third.isDone)
        #expect(loader.loadCount == 2)
    }

    @Test func `the naive actor doesn't cache a failure`() async throws {
        let service = ReentrantTokenService(loader: loader, clock: clock)
        let first = stage.start { try await service.retrieveToken() }
        try await loader.nextCall().fail(with: ScriptedFailure.transient)
        stage.run()
        let second = stage.start { try await service.retrieveToken() }
        try await loader.nextCall().succeed(with: AccessToken("a"))
        stage.run()
        #expect(first.error is ScriptedFailure)
        #expect(second.value?.value == "a")
    }

    // Museum 1: two loads: check, suspend, set (aws-sdk-swift's cached resolver; spring-security#14123: 20 fetches).
    @Test func `flaw of the naive actor: while one caller awaits its load, the next one enters and loads as well`() {
        let service = ReentrantTokenService(loader: loader, clock: clock)
        let callers = (1...20).map { _ in stage.start { try await service.retrieveToken() } }
        #expect(loader.loadCount == 20)
        #expect(callers.allSatisfy { !$0.isDone })
    }

    @Test func `flaw of the naive actor: the last answer is kept, even if it is the older token`() async throws {
        let service = ReentrantTokenService(loader: loader, clock: clock)
        let callers = (1...2).map { _ in stage.start { try await service.retrieveToken() } }
        let (first, second) = (try await loader.nextCall(), try await loader.nextCall())
        second.succeed(with: AccessToken("newer"))
        stage.run()
        first.succeed(with: AccessToken("older"))
        stage.run()
        let later = stage.start { try await service.retrieveToken() }
        #expect(callers.map { $0.value?.value } == ["older", "newer"])
        #expect(later.value?.value == "older")
    }

    // Museum 7: sign-out during a load is undone by its result (supabase-swift#1371, Alamofire, Auth0.swift).
    @Test func `flaw of the naive actor: a sign-out during a load is undone by the load's result`() async throws {
        let service = ReentrantTokenService(loader: loader, clock: clock)
        _ = stage.start { try await service.retrieveToken() }
        _ = stage.start { await service.signOut() }
        try await loader.nextCall().succeed(with: AccessToken("from before"))
        stage.run()
        let later = stage.start { try await service.retrieveToken() }
        #expect(later.value?.value == "from before")
    }
}
