import AccessTokens
import AccessTokensTesting
import DataLoading
import Foundation
import Testing

extension RealServerTests {
    /// Returns the server's introspection as a protected resource: the request carries one token, and asks about another.
    private func introspection() throws -> Audience {
        let request = Request(
            url: server.introspectionURL, method: "POST", headers: ["Content-Type": "application/x-www-form-urlencoded"],
            body: .data(Data("token=whatever".utf8)))
        return try Audience(
            service: TokenService(environment: .init(clock: clock), loader: try server.loader(for: server.client)),
            asking: request)
    }

    /// The service itself notices three of the expiries; two of them, and the revocation, show only in the server's empty 401.
    ///
    /// A round takes about a second, or longer on a busy machine, so that another token may expire; the expected number of loads
    /// follows from the number of refused tokens.
    @Test func `a thousand concurrent requests, through five expiries and a revocation, see no 401`() async throws {
        let audience = try introspection()
        let before = try await server.tokensIssued()
        func everybodyIsServed(_ when: Comment) async {
            let answers = await audience.ask()
            #expect(answers.count == Audience.size, when)
            #expect(answers.failures.isEmpty, "\(when): \(answers.failures.first.map { "\($0)" } ?? "")")
        }
        await everybodyIsServed("at first")
        for _ in 1...3 {
            clock.advance(by: server.lifetime)
            #expect(audience.service.cachedToken == nil, "it has expired")
            await everybodyIsServed("after an expiry")
        }
        for _ in 1...2 {
            let token = try #require(audience.service.cachedToken)
            // The server counts in whole seconds.
            try await ContinuousClock().sleep(for: server.lifetime + .seconds(1))
            #expect(try await !server.isActive(token) && audience.service.cachedToken == token, "only the server knows")
            await everybodyIsServed("after an expiry that only the server knows of")
        }
        try await server.revoke(try #require(audience.service.cachedToken))
        await everybodyIsServed("after a revocation")

        let issued = try await server.tokensIssued() - before
        let (flights, invalidations) = try await audience.finish()
        #expect(invalidations >= 3)
        #expect(flights.loads == 1 + 3 + invalidations && flights.successes == flights.started)
        #expect(issued == flights.started, "the server's books agree")
    }

    @Test func `a user's requests survive a revocation with one refresh`() async throws {
        let url = server.tokenURL.deletingLastPathComponent().appending(path: "userinfo")
        let service = TokenService(environment: .init(clock: clock), loader: try server.refreshLoader())
        let audience = try Audience(service: service, asking: Request(url: url))
        let signedIn = try await server.signIn()
        await service.replace(with: signedIn)
        let before = try await server.refreshesIssued()
        #expect(await audience.ask().failures.isEmpty)
        #expect(try await server.refreshesIssued() == before)
        try await server.revoke(signedIn, by: server.app)
        let answers = await audience.ask()
        #expect(answers.failures.isEmpty, "\(answers.failures.first.map { "\($0)" } ?? "")")
        let bodies = answers.compactMap { try? $0.get().body }
        #expect(Set(bodies).count == 1, "all callers are the same user")
        #expect(try await server.refreshesIssued() == before + 1)
        #expect(try await audience.finish().flights == Flights(loads: 1, successes: 1))
    }

    @Test func `a server killed with a thousand requests under way costs each of them one clear error`() async throws {
        let audience = try introspection()
        #expect(await audience.ask().failures.isEmpty)
        let loader = audience.makeLoader()
        try await server.process.restarting {
            // Freeze the server first: the system still accepts its requests, but only the first few, sent before it stops, are
            // answered.
            try server.process.freeze()
            let performances = audience.begin(with: loader)
            for performance in performances {
                for await case .ongoing in performance.states { break }
            }
            try await server.process.kill()
            var failures: [any Error] = []
            for performance in performances {
                do { _ = try await performance.response() } catch { failures.append(error) }
            }
            #expect(failures.count > Audience.size / 2)
            #expect(failures.allSatisfy { ($0 as? DataLoadingError)?.code == .connectionFailed })
        }
        let answers = await audience.ask()
        #expect(answers.failures.isEmpty, "\(answers.failures.first.map { "\($0)" } ?? "")")
    }

    @Test func `a server killed during its work leaves no request without an end`() async throws {
        let audience = try introspection()
        #expect(await audience.ask().failures.isEmpty)
        let loader = audience.makeLoader()
        try await server.process.restarting {
            let performances = audience.begin(with: loader)
            _ = try await performances[0].response()
            try await server.process.kill()
            for performance in performances {
                do {
                    #expect(try await performance.response().status == 200)
                } catch {
                    let code = (error as? DataLoadingError)?.code
                    // The token may have been refused because it expired, and the server killed during the load.
                    #expect(code == .connectionFailed || (error as? TokenServiceError)?.code == .loadFailed, "\(error)")
                }
            }
        }
        clock.advance(by: .seconds(60))
        #expect(await audience.ask().failures.isEmpty)
    }
}
