import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@testable import race_lab

/// A store that has a token and takes no other.
private struct FailingStore: TokenStore {
    struct Failure: Error, CustomStringConvertible {
        let description = "the disk is full"
    }

    @concurrent func load() async -> StoredToken? {
        StoredToken(AccessToken("a", lifetime: .seconds(60), refreshToken: "r"), received: Date())
    }

    @concurrent func save(_ token: StoredToken) async throws { throw Failure() }
    @concurrent func remove() async throws { throw Failure() }
}

@Suite struct `Watch over a run with a store` {
    @Test func `a run counts the token that the store had, and tells when a new one is not saved`() async throws {
        let clock = ManualClock()
        let stage = Stage()
        let loader = ScriptedLoader(isRepeatable: true)
        let service = TokenService(store: FailingStore(), environment: .driven(by: stage, clock: clock, seed: 1), loader: loader)
        let events = service.events()
        var watch = Watch(expiries: 1)
        func next() async throws -> String {
            for await event in events { return watch.note(event) }
            throw CancellationError()
        }

        _ = stage.start { try await service.retrieveToken() }
        #expect(try await next() == "the store's token is still good: 1 caller waited for it")
        #expect(watch.tokens == 1)
        clock.advance(by: .seconds(60))
        _ = stage.start { try await service.retrieveToken() }
        #expect(try await next() == "load 1 started: callers wait for it")
        try await loader.nextCall().succeed(with: AccessToken("b", lifetime: .seconds(60)))
        stage.run()
        #expect(try await next() == "load 1 and the store: the disk is full")
        #expect(try await next() == "load 1 succeeded: 1 caller waited for it")
        #expect(watch.isOver && watch.error == nil)
        let noCalls = Tally(callers: 1)
        let summary = RealSummary(elapsed: .seconds(9), watch: watch, asyncCallers: noCalls, callbackCallers: noCalls)
        #expect(summary.error == "The last token was not saved: the disk is full")
    }
}
