import AccessTokens
import AccessTokensHTTP
import AccessTokensTesting
import DataLoading
import Foundation
import TestBudgets
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// “Reacting to a 401”, run. `GuideTests` compares the page with this file.

@Suite(.timeLimit(.minutes(10)), .inRealTime) struct `Reacting to a 401` {
    private let server = SimulatedAuthorizationServer(clock: ManualClock(), keepsOneTokenValid: false)

    /// A resource server that accepts what `server` has issued, and nothing at all if it is strict.
    private func makeHost(isStrict: Bool = false) throws -> StubbedHost {
        try StubbedHost { [server] arrival in
            let isValid = !isStrict && server.accepts(AccessToken(arrival.token ?? ""))
            return isValid ? StubbedHost.Answer(body: "movies") : .invalidToken
        }
    }

    @Test func `a refused token is replaced and the request sent again, once`() async throws {
        let host = try makeHost(), tokens = TokenService(loader: server.loader)
        let client = RefusalClients.APIClient(session: host.session, tokens: tokens)
        server.revoke(try await tokens.retrieveToken())
        #expect(try await client.send(URLRequest(url: host.url)).1.statusCode == 200)
        #expect(host.arrivals.map(\.token) == ["access-1", "access-2"])
    }

    @Test func `many requests refused at once cause one load`() async throws {
        let host = try makeHost(), tokens = TokenService(loader: server.loader)
        server.revoke(try await tokens.retrieveToken())
        let client = RefusalClients.APIClient(session: host.session, tokens: tokens)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 1...20 { group.addTask { try await client.send(URLRequest(url: host.url)).1.statusCode } }
            for try await status in group { #expect(status == 200) }
        }
        #expect(server.loadsStarted == 2)
    }

    @Test func `a request that is refused after its user has changed is not sent again`() async throws {
        let tokens = TokenService(loader: server.loader)
        let host = try StubbedHost { [server] arrival in
            server.accepts(AccessToken(arrival.token ?? "")) ? StubbedHost.Answer(body: "movies") : .invalidToken
        }
        let client = RefusalClients.APIClient(session: host.session, tokens: tokens)
        let annas = try await tokens.retrieveToken()
        server.revoke(annas)
        _ = await tokens.reset()
        await tokens.replace(with: server.signIn())
        let (body, response) = try await client.send(URLRequest(url: host.url), with: annas)
        #expect(client.isRefused(body, response))
        let error = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken(insteadOf: annas) }
        #expect(error?.code == .reset && host.arrivals.count == 1)
    }

    @Test func `a late refusal of an old token keeps the fresh one, which invalidating the current token would drop`()
        async throws
    {
        let tokens = TokenService(loader: server.loader)
        let old = try await tokens.retrieveToken()
        await tokens.invalidate(old)
        let fresh = try await tokens.retrieveToken()
        await tokens.invalidate(old)
        #expect(tokens.cachedToken == fresh)
        if let current = tokens.cachedToken { await tokens.invalidate(current) }
        #expect(tokens.cachedToken == nil)
    }

    @Test func `a server that refuses every token gets two requests, and its answer is the outcome`() async throws {
        let host = try makeHost(isStrict: true), tokens = TokenService(loader: server.loader)
        let client = RefusalClients.APIClient(session: host.session, tokens: tokens)
        #expect(try await client.send(URLRequest(url: host.url)).1.statusCode == 401)
        #expect(host.arrivals.count == 2)
    }

    @Test func `a client that keeps asking causes no more than five loads`() async throws {
        let log = GuideLog()
        let host = try StubbedHost { _ in
            log.add("arrival")
            return StubbedHost.Answer(status: log.lines.count < 50 ? 401 : 200, headers: [:])
        }
        let tokens = TokenService(environment: .init(clock: ManualClock()), loader: server.loader)
        let client = RefusalClients.ForcingClient(session: host.session, tokens: tokens)
        #expect(try await client.send(URLRequest(url: host.url)) == 200 && server.loadsStarted == 6)
    }

    @Test func `DataLoading does the same without a client of one's own`() async throws {
        let host = try makeHost(), tokens = TokenService(loader: server.loader)
        let (session, apiURL, moviesURL) = (host.session, host.url, host.url.appending(path: "movies"))
        server.revoke(try await tokens.retrieveToken())
        let usage = TokenUsage()
        let factory = DataLoaderFactory(
            session: session,
            tokens: try OriginTokens(tokens, for: [apiURL], usage: usage))
        let movies = try await factory.makeLoader().perform(
            Request(url: moviesURL))
        #expect(String(decoding: movies.body, as: UTF8.self) == "movies")
        #expect(host.arrivals.map(\.token) == ["access-1", "access-2"])
    }

    @Test func `rules of their own recognise each API's refusals`() {
        let slack = TokenUsage {
            $0.members("error").contains("token_expired")
        }
        let facebook = TokenUsage(in: .query("access_token")) {
            $0.members("error", "code").contains("190")
        }
        let graphQL = TokenUsage {
            $0.refusesToken
                || $0.members("errors", "extensions", "code")
                    .contains("UNAUTHENTICATED")
        }
        let openStack = TokenUsage(in: .header("X-Auth-Token"))
        let gitHub = TokenUsage(in: .header("Authorization", scheme: "token"))
        let gRPC = TokenUsage { $0.header("grpc-status") == "16" }
        for usage in [slack, facebook, gRPC] { #expect(!usage.isRefused(by: TransportResponse(status: 401))) }
        for usage in [graphQL, openStack, gitHub] { #expect(usage.isRefused(by: TransportResponse(status: 401))) }
    }

    @Test func `a 403 names the missing scope and drops no token`() async throws {
        let host = try StubbedHost { _ in
            let challenge = "Bearer error=\"insufficient_scope\", scope=\"movies.write\""
            return StubbedHost.Answer(status: 403, headers: ["WWW-Authenticate": challenge])
        }
        let log = GuideLog(), tokens = TokenService(loader: server.loader)
        let factory = DataLoaderFactory(session: host.session, tokens: try OriginTokens(tokens, for: [host.url]))
        let (loader, request) = (factory.makeLoader(), Request(url: host.url, method: "POST"))
        do {
            _ = try await loader.perform(request)
        } catch let error as DataLoadingError
            where error.code == .insufficientScope
        {
            log.add("ask for consent to \(error.scope ?? "more")")
        }
        #expect(log.lines == ["ask for consent to movies.write"] && tokens.cachedToken != nil && server.loadsStarted == 1)
    }
}
