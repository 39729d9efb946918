import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Testing

/// One-time refresh tokens: each load spends one and receives the next, and a client that loses one is signed out.
extension RealServerTests {
    @Test func `two thousand callers share one-time refresh tokens, and the store has the newest`() async throws {
        let store = InMemoryTokenStore()
        let crowd = try refreshingCrowd(store: store)
        // A program that has just started spends no refresh token ahead of expiry.
        clock.advance(by: .seconds(60))
        let before = try await server.refreshesIssued()
        var current = try await server.signIn()
        await crowd.service.replace(with: current)
        #expect(try await crowd.ask().tokens == [current])
        var grants: Set<String?> = [current.refreshToken]

        for expiry in 1...5 {
            clock.advance(by: server.lifetime)
            let answers = try await crowd.ask { [crowd] caller in
                guard caller.isMultiple(of: 2) else { return }
                let token = try await crowd.service.retrieveToken()
                #expect(store.contents?.token == token, "saved before anybody has it")
            }
            #expect(answers.count == 2 * Crowd.size && answers.errors.isEmpty)
            #expect(answers.tokens.count == 1, "after expiry \(expiry) all get the same token")
            let next = try #require(answers.tokens.first)
            #expect(store.contents?.token == next)
            #expect(grants.insert(next.refreshToken).inserted, "its refresh token is a new one")
            #expect(try await server.isActive(next.value, for: server.app))
            #expect(try await server.isGrantActive(of: next))
            #expect(try await !server.isGrantActive(of: current), "and the server takes the earlier one no more")
            current = next
        }

        // The same applies to a refresh ahead of expiry.
        let events = crowd.service.events()
        let opening = try #require(RefreshPolicy().refreshStart(forLifetime: server.lifetime, refreshIn: nil, jitter: 1))
        clock.advance(by: opening)
        let answers = try await crowd.ask()
        #expect(answers.errors.isEmpty && answers.tokens.contains(current))
        _ = await events.first { $0.name == .loadSucceeded }
        let next = try #require(crowd.service.cachedToken)
        #expect(next != current && answers.tokens.isSubset(of: [current, next]))
        #expect(store.contents?.token == next)

        let issued = try await server.refreshesIssued() - before
        let flights = try await crowd.finish()
        #expect(flights == Flights(loads: 5, refreshes: 1, successes: 6))
        #expect(issued == flights.started, "the server's books agree")
        #expect(store.contents == nil, "signed out")
    }

    @Test func `a second service goes on with what the first one left in the store`() async throws {
        let store = InMemoryTokenStore()
        let before = try await server.refreshesIssued()
        let first = try refreshingCrowd(store: store)
        let signedIn = try await server.signIn()
        await first.service.replace(with: signedIn)
        clock.advance(by: server.lifetime)
        let rotated = try #require(try await first.ask().tokens.first)
        #expect(try await server.refreshesIssued() - before == 1)

        let second = try refreshingCrowd(store: store)
        let restored = try await second.ask()
        #expect(restored.errors.isEmpty && restored.tokens == [rotated], "no request: the token is good")
        #expect(try await server.refreshesIssued() - before == 1)
        clock.advance(by: server.lifetime)
        let answers = try await second.ask()
        #expect(answers.errors.isEmpty && answers.tokens.count == 1)
        let next = try #require(answers.tokens.first)
        #expect(next != rotated && store.contents?.token == next)

        // A third one finds an expired token: its grant is good.
        clock.advance(by: server.lifetime)
        let third = try refreshingCrowd(store: store)
        let last = try await third.ask()
        #expect(last.errors.isEmpty && last.tokens.count == 1 && !last.tokens.contains(next))
        #expect(store.contents?.token == last.tokens.first)
        #expect(try await server.isGrantActive(of: try #require(last.tokens.first)))

        let issued = try await server.refreshesIssued() - before
        #expect(try await second.finish() == Flights(loads: 1, successes: 1))
        #expect(try await third.finish() == Flights(loads: 1, successes: 1))
        #expect(issued == 3)
    }
}
