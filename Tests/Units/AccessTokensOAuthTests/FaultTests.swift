import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct FaultTests {
    let secrets = ["client-s3cr3t", "old-access", "new-access", "refresh-1", "refresh-2", "bWU6Y2xpZW50LXMzY3IzdA=="]

    /// Whether the first request has arrived.
    final class Arrival: Sendable {
        private let state = Lock(false)

        var hasCome: Bool { state.withLock { $0 } }

        /// Notes a request; returns whether it is the first.
        func isFirst() -> Bool {
            state.withLock { hasCome in
                defer { hasCome = true }
                return !hasCome
            }
        }
    }

    /// A transport whose limit is short only if it must pass, and counts only once the request has arrived.
    ///
    /// So a busy machine can't make it pass elsewhere. Short, since Foundation keeps a processor busy on Linux while it waits.
    struct Transport: TokenTransport {
        let fault: Fault
        let arrival: Arrival

        var isSilenceExpected: Bool { if case .error(.timedOut, _) = fault.outcome { !arrival.hasCome } else { false } }

        @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
            var request = request
            request.timeLimit = .milliseconds(400)
            while isSilenceExpected {
                do {
                    return try await URLSessionTransport().send(request)
                } catch TransportError.timedOut where !arrival.hasCome {
                    request.timeLimit *= 2
                }
            }
            request.timeLimit = .seconds(40)
            return try await URLSessionTransport().send(request)
        }
    }

    /// A server that answers its first request with the fault and every later one with a token, and how to reach it.
    func server(_ fault: Fault) throws -> (LoopbackServer, Transport) {
        let arrival = Arrival()
        let server = try LoopbackServer { _ in
            arrival.isFirst()
                ? fault.reply : Fault.answer(#"{"access_token":"good","token_type":"Bearer","expires_in":3600}"#)
        }
        return (server, Transport(fault: fault, arrival: arrival))
    }

    func client(_ server: LoopbackServer, _ transport: Transport) throws -> OAuthClient {
        try OAuthClient(
            id: "me", authentication: .clientSecretBasic("client-s3cr3t"), tokenURL: server.url, transport: transport,
            wallClock: { Date(timeIntervalSince1970: 784_111_747) })
    }

    // RFC 9700 §4.14.2 (museum 19, 29): a hostile server costs an error, never the session.
    @Test(arguments: Fault.ofConnections + Fault.ofAnswers + Fault.ofLifetimes)
    func `whatever a server does, the session goes on with the refresh token that the service has`(fault: Fault) async throws {
        let (server, transport) = try server(fault)
        let loader = try RefreshTokenLoader(client(server, transport))
        let tokens = TokenService(environment: .init(clock: ManualClock()), loader: loader)
        await tokens.replace(with: AccessToken("old-access", lifetime: .zero, refreshToken: "refresh-1"))
        do {
            let token = try await tokens.retrieveToken()
            guard case .token(let lifetime) = fault.outcome else {
                Issue.record("no attempt brought a token")
                return
            }
            #expect(token.value == "new-access" && token.lifetime == lifetime)
            await tokens.invalidate(token)
        } catch let error as TokenServiceError {
            check(error, against: fault.outcome)
        }
        // The service would decide when to try again; here the test does so at once.
        await tokens.retryNow()
        #expect(try await tokens.retrieveToken().value == "good")
        var requests = server.requests.makeAsyncIterator()
        #expect(await requests.next()?.hasSuffix("refresh_token=refresh-1") == true)
        #expect(await requests.next()?.hasSuffix("refresh_token=\(fault.kept)") == true)
    }

    func check(_ error: TokenServiceError, against outcome: Fault.Outcome) {
        for secret in secrets { #expect(!texts(error).contains(secret)) }
        #expect(error.remedy != .signIn)
        switch outcome {
        case .token: Issue.record("there is a token: \(error)")
        case .error(let code, let retryAfter):
            let cause = error.underlying as? OAuthError
            #expect(cause?.code == code, "\(error)")
            #expect(cause?.retryAfter == retryAfter)
        }
    }

    // Some of the faults of connections end with the time limit.
    @Test(arguments: Fault.ofAnswers + (isThorough ? Fault.ofConnections : []))
    func `whatever a server does, a client-credentials load ends with the same error`(fault: Fault) async throws {
        let (server, transport) = try server(fault)
        let loader = try ClientCredentialsLoader(client(server, transport))
        let error = try await loader.failure()
        check(TokenServiceError(.loadFailed, underlying: error, remedy: error.remedy), against: fault.outcome)
        #expect(try await loader.loadToken(replacing: nil).value == "good")
    }

    static let exchanges: [Grant] = [
        .authorizationCode("refresh-1", verifier: "verifier"), .jwtBearer("refresh-1"),
        .tokenExchange(subject: "refresh-1", type: .jwt),
        Grant(type: "urn:ietf:params:oauth:grant-type:device_code", ["device_code": "refresh-1"]),
    ]

    // All exchanges read their answers in the same code; faults of connections concern the transport, and are tested elsewhere.
    @Test(arguments: Fault.ofAnswers + Fault.ofLifetimes, exchanges)
    func `whatever a server does, an exchange loses no refresh token and shows nothing`(fault: Fault, grant: Grant) async throws {
        let (server, transport) = try server(fault)
        let client = try client(server, transport)
        let isSalvaged = fault.kept == "refresh-2" && !grant.isRepeatable
        do {
            let token = try await client.token(for: grant).token
            guard case .token(let lifetime) = fault.outcome else {
                Issue.record("no token was expected")
                return
            }
            #expect(token.lifetime == lifetime && token.refreshToken == "refresh-2")
        } catch let salvaged as SalvagedGrant {
            #expect(isSalvaged && salvaged.grant.refreshToken == "refresh-2")
            let reason = try #require(salvaged.reason as? OAuthError)
            check(TokenServiceError(.loadFailed, underlying: reason, remedy: reason.remedy), against: fault.outcome)
        } catch let error as OAuthError {
            #expect(!isSalvaged)
            check(TokenServiceError(.loadFailed, underlying: error, remedy: error.remedy), against: fault.outcome)
        }
        #expect(try await client.token(for: grant).token.value == "good")
    }

    // Requests whose answer has no token: a device's first request, an introspection, a form to any endpoint.
    @Test(arguments: Fault.ofAnswers)
    func `whatever a server does, a request that expects no token ends with an error and shows nothing`(fault: Fault) async throws
    {
        for request in 0..<3 {
            let (server, transport) = try server(fault)
            let client = try client(server, transport)
            let error = try await #require(throws: OAuthError.self) {
                switch request {
                case 0: _ = try await DeviceSignIn(client, deviceAuthorizationURL: server.url, scope: "a")
                case 1: _ = try await client.introspect("refresh-1", at: server.url)
                default: _ = try await client.members(for: ["token": "refresh-1"], at: server.url).decoded(as: [String].self)
                }
            }
            guard case .error(let code, let retryAfter) = fault.outcome else { throw error }
            // No token is expected.
            let expected = code == .unsupportedTokenType ? .unreadableResponse : code
            #expect(error.code == expected && error.retryAfter == retryAfter && error.remedy != .signIn, "\(error)")
            for secret in secrets { #expect(!texts(error).contains(secret)) }
        }
    }
}
