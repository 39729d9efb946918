import AccessTokensHTTP
import AccessTokens
import AccessTokensDispatch
import AccessTokensFiles
import AccessTokensOAuth
import AccessTokensTesting
import DataLoading
import Dispatch
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The visible text of every type that reaches a token, a client's secret, a session, or a request with either.
///
/// On Linux a `URLSession` with running tasks can't even be reflected: that crashes the process.
@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct SecretsTests {
    static let token = AccessToken("SECRET-access", lifetime: .seconds(3600), refreshToken: "SECRET-refresh")
    /// A load may begin long after it was requested, if other tests keep the machine busy; the tests wait for its request without
    /// a limit.
    static let patience = RefreshPolicy(loadTimeout: .seconds(600))
    static let never = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"

    /// A loader as a user might write it, which doesn't hide its contents.
    struct PlainLoader: TokenLoader, AccessTokenLoader {
        let clientSecret = "SECRET-client"
        func loadToken(replacing previous: AccessToken?) async -> AccessToken { SecretsTests.token }
        func load(then handler: @escaping Handler) { handler(.success(SecretsTests.token)) }
        var isRepeatable: Bool { false }
    }

    @Test func `no value involved in a running request shows its token`() async throws {
        let server = try LoopbackServer { _ in .unfinished(Self.never) }
        let service = TokenService(policy: Self.patience, loader: PlainLoader())
        let origins = try OriginTokens(service, for: [server.url])
        let factory = DataLoaderFactory(tokens: origins)
        let loader = factory.makeLoader()
        let request = Request(
            url: server.url, method: "POST", headers: ["X-Key": "SECRET-key"], body: .data(Data("SECRET-body".utf8)))
        let running = loader.start(request)
        let sent = try #require(await server.requests.first { _ in true })
        #expect(sent.contains("Bearer SECRET-access"), "it is in flight")

        let iterator = running.states.makeAsyncIterator()
        let values: [Any] = [
            loader, factory, origins, running, running.states, iterator, running.state, request,
            request.body as Any, Request.Body.stream(isReplayable: true) { InputStream(data: Data("SECRET-body".utf8)) },
            service, AccessTokenService(service: service), AccessTokenService(loader: PlainLoader()),
            PlainLoader().tokenLoader,
        ]
        for value in values + [values] { #expect(!everything(in: value).contains("SECRET"), "\(type(of: value))") }
    }

    @Test func `no value that a failed request leaves shows its token`() async throws {
        for reply in [LoopbackServer.Reply.reset(""), ResourceServer.status(500, body: "SECRET")] {
            let server = try LoopbackServer { _ in reply }
            let service = TokenService(loader: PlainLoader())
            let loader = DataLoaderFactory(tokens: try OriginTokens(service, for: [server.url])).makeLoader()
            let running = loader.start(Request(url: server.url))
            let error = await #expect(throws: DataLoadingError.self) { try await running.response() }
            for value in [error as Any, error?.underlying as Any, error?.response as Any, running, running.state] {
                #expect(!everything(in: value).contains("SECRET"), "\(type(of: value))")
            }
        }
    }

    @Test(arguments: [
        ("GET", "http://a.example/movies%0A%20?key=SECRET", "GET a.example/movies%0A%20"),
        ("GET\nPOST", "http://a.example/", "an invalid method: a.example/"), ("GET", "movies", "GET nowheremovies"),
    ])
    func `a request is described in one line`(method: String, url: String, text: String) throws {
        #expect("\(Request(url: try #require(URL(string: url)), method: method))" == text)
    }

    // A query may hold a signature or a key, and Foundation's error contains the whole URL.
    @Test func `the session's own error shows neither query nor path`() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/SECRET-path?key=SECRET-query"))
        let error = await #expect(throws: DataLoadingError.self) {
            try await DataLoaderFactory().makeLoader().perform(Request(url: url))
        }
        let underlying = try #require(error?.underlying as? URLError)
        #expect(underlying.code == .cannotConnectToHost && !underlying.localizedDescription.isEmpty)
        #expect(!everything(in: underlying).contains("SECRET") && !"\((underlying as NSError).userInfo)".contains("SECRET"))
    }

    @Test func `no value involved in a running load shows its secrets`() async throws {
        let server = try LoopbackServer { _ in .unfinished(Self.never) }
        let transport = URLSessionTransport()
        let refresh = try RefreshTokenLoader(
            tokenURL: server.url, clientID: "app", clientSecret: "SECRET-client", transport: transport)
        let credentials = try ClientCredentialsLoader(
            tokenURL: server.url, clientID: "app", clientSecret: "SECRET-client", transport: transport)
        let client = try OAuthClient(
            id: "app", authentication: .clientSecretBasic("SECRET-client"), tokenURL: server.url, transport: transport)
        let stored = StoredToken(Self.token, received: Date())
        let store = InMemoryTokenStore(StoredToken(AccessToken("", lifetime: .zero, refreshToken: "SECRET-r"), received: Date()))
        let service = TokenService(policy: Self.patience, store: store, loader: refresh)
        let tasks: [Task<Void, Never>] = [
            Task { _ = try? await service.retrieveToken() }, Task { _ = try? await credentials.loadToken(replacing: nil) },
            Task { _ = try? await client.revoke(Self.token, at: server.url) },
        ]
        var requests = server.requests.makeAsyncIterator()
        for _ in tasks { _ = try #require(await requests.next()) }

        let file = FileTokenStore(path: "token")
        let values: [Any] = [
            transport, refresh, credentials, client, store, stored, service, AccessTokenService(service: service), file,
            TransportRequest(url: server.url, headers: ["Authorization": "SECRET"], body: Data("SECRET".utf8)),
            TransportResponse(status: 200, headers: ["X": "SECRET"], body: Data("SECRET".utf8)),
            AuthenticationChallenge(scheme: "Negotiate", token68: "SECRET"),
        ]
        for value in values + [values] { #expect(!everything(in: value).contains("SECRET"), "\(type(of: value))") }
        await service.replace(with: Self.token)
        for task in tasks { task.cancel() }
    }

    @Test func `no value of the test kit's server and loader shows a token`() async throws {
        let loader = ScriptedLoader()
        let service = TokenService(policy: Self.patience, loader: loader)
        await service.replace(with: AccessToken("SECRET-old", lifetime: .zero, refreshToken: "SECRET-refresh"))
        let caller = Task { try await service.retrieveToken() }
        let call = try await loader.nextCall()
        let server = SimulatedAuthorizationServer(rotatesRefreshTokens: true)
        for value in [loader, call, service, server.loader, server] as [Any] {
            #expect(!everything(in: value).contains("SECRET"), "\(type(of: value))")
        }
        call.succeed(with: Self.token)
        _ = try await caller.value
    }

    @Test func `no printed value of a grant that a service gives up shows its token`() async throws {
        let (discards, continuation) = AsyncStream.makeStream(of: DiscardedGrant.self)
        let service = TokenService(onDiscard: { continuation.yield($0) }) { _ in Self.token }
        await service.replace(with: Self.token)
        let change = await service.reset()
        let salvaged = SalvagedGrant(Self.token, reason: CocoaError(.fileNoSuchFile))
        let discarded = try #require(await discards.first { _ in true })
        #expect(change.discarded == [Self.token] && discarded.token == Self.token)
        for value in [change, discarded, salvaged, StoredToken(Self.token, received: Date())] as [Any] {
            #expect(!everything(in: value).contains("SECRET"), "\(type(of: value))")
        }
        #expect((salvaged as any Error).localizedDescription == salvaged.description)
    }

    @Test func `every value can be dumped while requests start and end`() async throws {
        let server = try LoopbackServer(answering: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
        let service = TokenService(loader: PlainLoader())
        let origins = try OriginTokens(service, for: [server.url])
        let loader = DataLoaderFactory(tokens: origins).makeLoader()
        let request = Request(url: server.url)
        try await withThrowingTaskGroup { group in
            for _ in 1...8 {
                group.addTask { for _ in 1...25 { _ = try await loader.perform(request) } }
            }
            for _ in 1...2 {
                group.addTask {
                    for _ in 1...200 {
                        let running = loader.start(request)
                        let values: [Any] = [loader, origins, service, running, running.states]
                        #expect(!everything(in: values).contains("SECRET"))
                        running.cancel()
                        await Task.yield()
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
