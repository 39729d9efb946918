import AccessTokens
import AccessTokensHTTP
import AccessTokensTesting
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import DataLoading

/// An API with the usage that a program writes for it, and how it is documented to refuse an expired token.
struct DocumentedAPI: Sendable, CustomTestStringConvertible {
    let name: String
    let usage: TokenUsage
    /// A line of a request that carries the token, which is written `TOKEN` here.
    let carries: String
    let refusal: LoopbackServer.Reply

    var testDescription: String { name }

    static func json(_ status: Int, _ body: String, _ headers: String = "") -> LoopbackServer.Reply {
        ResourceServer.status(status, headers + "Content-Type: application/json\r\n", body: body)
    }

    static let all = [
        // docs.slack.dev/authentication/using-token-rotation
        DocumentedAPI(
            name: "Slack",
            usage: TokenUsage(in: .header("Authorization", scheme: "Bearer")) {
                $0.members("error").contains("token_expired")
            },
            carries: "Authorization: Bearer TOKEN\r\n", refusal: json(200, #"{"ok":false,"error":"token_expired"}"#)),
        // developers.arcgis.com/rest/services-reference/enterprise: 498 in a body with status 200.
        DocumentedAPI(
            name: "ArcGIS",
            usage: TokenUsage(in: .query("token")) {
                $0.status == 498 || $0.members("error", "code").contains("498")
            },
            carries: "?f=json&token=TOKEN HTTP/1.1\r\n",
            refusal: json(200, #"{"error":{"code":498,"message":"Invalid token.","details":[]}}"#)),
        DocumentedAPI(
            name: "ArcGIS with its own status",
            usage: TokenUsage(in: .header("X-Esri-Authorization", scheme: "Bearer")) { $0.status == 498 },
            carries: "X-Esri-Authorization: Bearer TOKEN\r\n", refusal: ResourceServer.status(498)),
        // developers.facebook.com/docs/facebook-login/access-tokens/debugging-and-error-handling
        DocumentedAPI(
            name: "Facebook",
            usage: TokenUsage(in: .query("access_token")) {
                $0.members("error", "code").contains("190")
            },
            carries: "&access_token=TOKEN HTTP/1.1\r\n",
            refusal: json(400, #"{"error":{"message":"Session has expired","type":"OAuthException","code":190}}"#)),
        // apim.docs.wso2.com: error codes 900901 and 900903.
        DocumentedAPI(
            name: "WSO2", usage: TokenUsage(), carries: "Authorization: Bearer TOKEN\r\n",
            refusal: json(
                401, #"{"code":"900901"}"#,
                "WWW-Authenticate: OAuth2 realm=\"WSO2 API Manager\", error=\"invalid_token\"\r\n")),
        // zoho.com/crm/developer/docs/api/v8/access-refresh.html
        DocumentedAPI(
            name: "Zoho",
            usage: TokenUsage(in: .header("Authorization", scheme: "Zoho-oauthtoken")) {
                $0.members("code").contains("INVALID_TOKEN")
            },
            carries: "Authorization: Zoho-oauthtoken TOKEN\r\n",
            refusal: json(401, #"{"code":"INVALID_TOKEN","message":"invalid oauth token","status":"error"}"#)),
        // shopify.dev/docs/api/usage/authentication
        DocumentedAPI(
            name: "Shopify", usage: TokenUsage(in: .header("X-Shopify-Access-Token")),
            carries: "X-Shopify-Access-Token: TOKEN\r\n",
            refusal: json(401, #"{"errors":"[API] Invalid API key or access token"}"#)),
        // docs.github.com/en/rest/authentication/authenticating-to-the-rest-api
        DocumentedAPI(
            name: "GitHub", usage: TokenUsage(in: .header("Authorization", scheme: "token")),
            carries: "Authorization: token TOKEN\r\n", refusal: json(401, #"{"message":"Bad credentials"}"#)),
        // developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/errorcodes.htm
        DocumentedAPI(
            name: "Salesforce",
            usage: TokenUsage(in: .header("Authorization", scheme: "OAuth")) {
                $0.members("errorCode").contains("INVALID_SESSION_ID")
            },
            carries: "Authorization: OAuth TOKEN\r\n",
            refusal: json(
                401, #"[{"message":"Session expired or invalid","errorCode":"INVALID_SESSION_ID"}]"#,
                "WWW-Authenticate: Token\r\n")),
        // developer-docs.amazon.com/sp-api/docs/authorization-errors
        DocumentedAPI(
            name: "Amazon's selling partners",
            usage: TokenUsage(in: .header("x-amz-access-token")) {
                $0.status == 403 && $0.members("errors", "details").contains { $0.hasSuffix("has expired.") }
            },
            carries: "x-amz-access-token: TOKEN\r\n",
            refusal: json(
                403, #"{"errors":[{"code":"Unauthorized","details":"The access token you provided has expired."}]}"#)),
        // docs.openstack.org/api-ref/identity/v3
        DocumentedAPI(
            name: "OpenStack", usage: TokenUsage(in: .header("X-Auth-Token")), carries: "X-Auth-Token: TOKEN\r\n",
            refusal: json(401, "{}", "WWW-Authenticate: Keystone uri=\"http://127.0.0.1/identity\"\r\n")),
        // apollographql.com/docs/apollo-server/data/errors
        DocumentedAPI(
            name: "GraphQL",
            usage: TokenUsage {
                $0.members("errors", "extensions", "code").contains("UNAUTHENTICATED")
            },
            carries: "Authorization: Bearer TOKEN\r\n",
            refusal: json(
                200, #"{"data":null,"errors":[{"message":"x"},{"extensions":{"code":"UNAUTHENTICATED"}}]}"#)),
        // grpc.github.io/grpc/core/md_doc_statuscodes.html
        DocumentedAPI(
            name: "gRPC", usage: TokenUsage { $0.header("grpc-status") == "16" },
            carries: "Authorization: Bearer TOKEN\r\n", refusal: ResourceServer.ok("", headers: "grpc-status: 16\r\n")),
        // A server that answers for an old token as for too many requests.
        DocumentedAPI(
            name: "a token rotated away", usage: TokenUsage { $0.status == 429 && $0.header("Retry-After") == nil },
            carries: "Authorization: Bearer TOKEN\r\n", refusal: ResourceServer.status(429)),
    ]
}

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct TokenUsageTests {
    /// Tokens named access-1, access-2 and so on.
    let tokens = TokenService(loader: SimulatedAuthorizationServer(clock: ManualClock()).loader)

    func loader(_ server: LoopbackServer, _ usage: TokenUsage) throws -> DataLoader {
        DataLoaderFactory(tokens: try OriginTokens(tokens, for: [server.url], usage: usage)).makeLoader()
    }

    @Test(arguments: DocumentedAPI.all)
    func `each API gets the token in its documented place, and its own kind of refusal brings a new one, once`(api: DocumentedAPI)
        async throws
    {
        let server = try LoopbackServer { $0.contains("access-1") ? api.refusal : ResourceServer.ok("fine") }
        let request = Request(url: server.url.appending(queryItems: [URLQueryItem(name: "f", value: "json")]))
        #expect(try await loader(server, api.usage).perform(request).body == Data("fine".utf8))
        var requests = server.requests.makeAsyncIterator()
        for token in ["access-1", "access-2"] {
            let text = try #require(await requests.next())
            // Names of headers have no case.
            let line = api.carries.replacing("TOKEN", with: token).lowercased()
            #expect(text.lowercased().contains(line), "\(text)")
            #expect(text.ranges(of: token).count == 1)
        }
    }

    @Test(arguments: DocumentedAPI.all)
    func `an API that refuses the new token, too, gets no third request, and the error doesn't show the token`(
        api: DocumentedAPI
    ) async throws {
        let arrived = Lock(0)
        let server = try LoopbackServer { _ in
            arrived.withLock { $0 += 1 }
            return api.refusal
        }
        let error = try #require(
            await #expect(throws: DataLoadingError.self) { try await loader(server, api.usage).perform(Request(url: server.url)) }
        )
        #expect(error.code == .unauthorized && error.description.hasPrefix("The server refused a new token as well"))
        #expect(!everything(in: error).contains("access-") && error.response?.url == server.url)
        #expect(arrived.withLock { $0 } == 2 && tokens.cachedToken == nil)
    }

    @Test(arguments: DocumentedAPI.all)
    func `a thousand requests that an API refuses at once make one load, and each gets its answer`(api: DocumentedAPI)
        async throws
    {
        let url = try #require(URL(string: "https://api.example/"))
        let world = RefusingWorld(requests: 1000, usage: api.usage, refusal: try await answer(of: api))
        let authorization = SimulatedAuthorizationServer(clock: ManualClock())
        let runner = RequestRunner(
            session: world,
            tokens: try OriginTokens(TokenService(loader: authorization.loader), for: [url], usage: api.usage))
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 1...1000 {
                group.addTask {
                    try await runner.response(to: runner.call(Request(url: url)), reporting: { _ in }).status
                }
            }
            for try await status in group { #expect(status == 299) }
        }
        #expect(authorization.loadsStarted == 2 && world.sends == 2000)
    }

    /// Returns what a client reads of an API's refusal.
    private func answer(of api: DocumentedAPI) async throws -> Response {
        let server = try LoopbackServer { _ in api.refusal }
        do {
            return try await DataLoaderFactory().makeLoader().perform(Request(url: server.url))
        } catch let error as DataLoadingError {
            return try #require(error.response)
        }
    }

    @Test func `a request that has its own value in the token's place gets no token`() async throws {
        let server = try LoopbackServer { _ in ResourceServer.ok("") }
        let own = server.url.appending(queryItems: [URLQueryItem(name: "token", value: "own")])
        _ = try await loader(server, TokenUsage(in: .query("token"))).perform(Request(url: own))
        _ = try await loader(server, TokenUsage(in: .header("X-Key"))).perform(
            Request(url: server.url, headers: ["x-key": "own"]))
        // Its Authorization is for something else.
        _ = try await loader(server, TokenUsage(in: .header("X-Key")))
            .perform(Request(url: server.url, headers: ["Authorization": "Basic eA=="]))
        var requests = server.requests.makeAsyncIterator()
        for _ in 1...2 {
            let text = try #require(await requests.next())
            #expect(!text.contains("access-"))
        }
        let text = try #require(await requests.next())
        #expect(text.contains("X-Key: access-1\r\n"))
    }

    @Test func `no text shows a token in the URL, and it follows no redirect to another origin`() async throws {
        let elsewhere = try LoopbackServer { _ in ResourceServer.status(500) }
        // As gateways do, with the whole query.
        let server = try LoopbackServer { text in
            let query = text.split(separator: " ")[1].drop { $0 != "?" }
            if text.hasPrefix("GET /second") {
                return ResourceServer.status(307, "Location: \(elsewhere.url.absoluteString)\(query)\r\n")
            }
            return ResourceServer.status(302, "Location: /second\(query)\r\n")
        }
        let request = Request(url: server.url.appending(queryItems: [URLQueryItem(name: "q", value: "a b")]))
        let error = try #require(
            await #expect(throws: DataLoadingError.self) {
                try await loader(server, TokenUsage(in: .query("access_token"))).perform(request)
            })
        var requests = server.requests.makeAsyncIterator()
        for path in ["token", "second"] {
            #expect(await requests.next()?.hasPrefix("GET /\(path)?q=a%20b&access_token=access-1 HTTP") == true)
        }
        #expect(await elsewhere.requests.first { _ in true }?.hasPrefix("GET /token?q=a%20b HTTP") == true)
        #expect(error.response?.url.query() == "q=a%20b" && !everything(in: error).contains("access-1"))
    }

    // As sign-in pages get it, or a path.
    @Test(arguments: [
        "/login?next=%2Fx%3Faccess_token%3Daccess-1", "/login?token=access-1", "/access-1", "/?n=%252Faccess%252D1",
    ])
    func `a redirect to another origin that has the token in another place is refused`(target: String) async throws {
        let elsewhere = try LoopbackServer { _ in ResourceServer.status(200) }
        let place = elsewhere.url.deletingLastPathComponent().absoluteString.dropLast()
        let server = try LoopbackServer { _ in ResourceServer.status(302, "Location: \(place)\(target)\r\n") }
        let error = try #require(
            await #expect(throws: DataLoadingError.self) {
                try await loader(server, TokenUsage(in: .query("access_token"))).perform(Request(url: server.url))
            })
        #expect(error.code == .redirectRefused && !everything(in: error).contains("access-1"))
    }

    @Test func `a token in the URL is encoded, and no connection's error shows it`() async throws {
        let token = AccessToken("SECRET+/=&?")
        let server = try LoopbackServer { _ in .reset("") }
        let service = TokenService { _ in token }
        let tokens = try OriginTokens(service, for: [server.url], usage: TokenUsage(in: .query("key")))
        let loader = DataLoaderFactory(tokens: tokens).makeLoader(), running = loader.start(Request(url: server.url))
        let error = await #expect(throws: DataLoadingError.self) { try await running.response() }
        #expect(await server.requests.first { _ in true }?.hasPrefix("GET /token?key=SECRET%2B%2F%3D%26%3F HTTP") == true)
        for value in [loader as Any, error as Any, error?.underlying as Any, running, running.state, tokens] {
            #expect(!everything(in: value).contains("SECRET"))
        }
        let details = String(describing: (error?.underlying as? NSError)?.userInfo ?? [:])
        #expect(!details.contains("SECRET"))
    }

    @Test(arguments: [
        TokenUsage.Place.header("Host"), .header("a b"), .header(""), .header("X", scheme: "a b"), .query(""),
        .header("Content-Length", scheme: "x"),
    ])
    func `a place that can carry no token is refused when the tokens are bound`(place: TokenUsage.Place) throws {
        let url = try #require(URL(string: "https://api.example/"))
        #expect(throws: DataLoadingError.self) { try OriginTokens(tokens, for: [url], usage: TokenUsage(in: place)) }
        #expect(throws: DataLoadingError.self) {
            try OriginTokens(keys: [url: "a"], usage: { _ in TokenUsage(in: place) }) { _ in tokens }
        }
    }

    @Test(arguments: [
        (#"Bearer error="invalid_token", DPoP error="use_dpop_nonce""#, true, false, false),
        (#"Bearer error="insufficient_scope", DPoP error="invalid_token""#, false, true, true),
        (#"Bearer error="invalid_token", DPoP algs="ES256""#, true, true, true),
        (#"DPoP error="invalid_token""#, true, true, true), (#"Basic realm="x""#, true, true, true),
        (#"Bearer error="invalid_request""#, false, false, false),
    ])
    func `an answer's words about bound tokens don't count for a bearer token, and the other way round`(
        challenges: String, ofBearer: Bool, ofDPoP: Bool, ofUnknown: Bool
    ) {
        let answer = TransportResponse(status: 401, headers: ["WWW-Authenticate": challenges])
        #expect(TokenUsage().isRefused(by: answer, tokenType: "bearer") == ofBearer)
        #expect(TokenUsage().isRefused(by: answer, tokenType: "DPoP") == ofDPoP)
        #expect(TokenUsage().isRefused(by: answer) == ofUnknown)
    }

    @Test(arguments: [
        (#"{"a":{"b":"x"}}"#, ["x"]), (#"[{"a":[{"b":1},{"b":[true,"y"]},null,"z"]},7]"#, ["1", "true", "y"]),
        (#"{"a":"b"}"#, []), (#"{"a":{"b":{"c":1}}}"#, []), (#"{"a":{"b":null}}"#, []), ("", []), ("<a><b>", []), ("\"b\"", []),
        (String(repeating: "[", count: 100_000), []),
        (#"{"a":{"b":"x"}, "c":""# + String(repeating: "c", count: 1 << 20) + "\"}", []),
    ])
    func `a body's members are found inside arrays, and in no other nesting`(body: String, expected: [String]) {
        #expect(TransportResponse(status: 200, body: Data(body.utf8)).members("a", "b") == expected)
    }
}

/// Refuses the requests with the first token, as soon as all have arrived.
private final class RefusingWorld: MessageSender {
    private let state = Lock((sends: 0, waiting: [CheckedContinuation<Void, Never>]()))
    private let requests: Int
    private let refusal: Response

    init(requests: Int, usage: TokenUsage, refusal: Response) {
        self.requests = requests
        self.refusal = refusal
    }

    var sends: Int { state.withLock { $0.sends } }

    func send(
        _ message: Message, with carried: CarriedToken?, limit: Int,
        reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                state.sends += 1
                guard state.sends <= requests else { return [continuation] }
                state.waiting.append(continuation)
                guard state.sends == requests else { return [] }
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in ready { continuation.resume() }
        }
        return carried?.token.value == "access-1" ? refusal : Response(url: message.url, status: 299)
    }
}
