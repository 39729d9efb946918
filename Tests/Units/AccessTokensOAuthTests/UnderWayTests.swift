import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("What is known about a failed request", .inRealTime) struct UnderWayTests {
    private func failure(_ transport: any TokenTransport, at url: URL? = nil) async throws -> OAuthError {
        let loader = try RefreshTokenLoader(
            tokenURL: url ?? #require(URL(string: "https://as.example/token")), clientID: "me", transport: transport)
        return try #require(
            await #expect(throws: OAuthError.self) {
                _ = try await loader.loadToken(replacing: AccessToken("old", refreshToken: "r"))
            })
    }

    @Test(arguments: [
        (400, false), (401, false), (429, false), (500, false), (502, true), (503, false), (504, true), (200, false),
    ])
    func `an answer of the server itself ends a request, while a gateway's may leave it under way`(
        status: Int, mayBeUnderWay: Bool
    ) async throws {
        let error = try await failure(ScriptedTransport { TransportResponse(status, "{}") })
        #expect(error.mayBeUnderWay == mayBeUnderWay, "\(error)")
    }

    @Test func `an answer that the grant is already being processed leaves the request under way`() async throws {
        let body = #"{"error":"invalid_grant","error_description":"Token request is already being processed."}"#
        let error = try await failure(ScriptedTransport { TransportResponse(400, body) })
        #expect(error.mayBeUnderWay && error.remedy == .retry, "\(error)")
    }

    @Test(
        arguments: [
            (.cannotConnectToHost, false), (.cannotFindHost, false), (.dnsLookupFailed, false), (.notConnectedToInternet, false),
            (.serverCertificateUntrusted, false), (.serverCertificateHasBadDate, false), (.serverCertificateNotYetValid, false),
            (.serverCertificateHasUnknownRoot, false), (.secureConnectionFailed, true), (.clientCertificateRejected, true),
            (.networkConnectionLost, true), (.timedOut, true), (.unknown, true),
        ] as [(URLError.Code, Bool)])
    func `a request without a connection isn't under way`(code: URLError.Code, mayBeUnderWay: Bool) async throws {
        let error = try await failure(ScriptedTransport { throw URLError(code) })
        #expect(error.mayBeUnderWay == mayBeUnderWay, "\(error)")
        #expect("\(error)".contains("so nothing was sent") != mayBeUnderWay || code == .timedOut)
    }

    @Test func `a transport says that nothing was sent`() async throws {
        let error = try await failure(
            ScriptedTransport { throw TransportError.notSent("the handshake failed", underlying: URLError(.unknown)) })
        #expect(error.code == .connectionFailed && !error.mayBeUnderWay && error.underlying is URLError)
        #expect(
            "\(error)"
                == "The authorization server at https://as.example/token could not be reached, so nothing was sent: the handshake failed."
        )
    }

    // Neither a server without TLS nor one that hangs up on the greeting ever sees the form.
    @Test(arguments: [
        LoopbackServer.Reply.bytes("HTTP/1.1 400 No\r\n\r\n"), .bytes(""), .reset(""), .raw([21, 3, 3, 0, 2, 2, 40]),
    ])
    func `a failed handshake has sent nothing`(reply: LoopbackServer.Reply) async throws {
        let server = try LoopbackServer { _ in reply }
        let url = try #require(URL(string: server.url.absoluteString.replacing("http:", with: "https:")))
        let error = try await failure(URLSessionTransport(), at: url)
        #expect(error.code == .connectionFailed && !error.mayBeUnderWay, "\(error)")
    }

    @Test(arguments: [LoopbackServer.Reply.bytes(""), .reset(""), .bytes("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")])
    func `a server that hangs up after the form may have read it`(reply: LoopbackServer.Reply) async throws {
        let server = try LoopbackServer { _ in reply }
        let error = try await failure(URLSessionTransport(), at: server.url)
        #expect(error.code == .connectionFailed && error.mayBeUnderWay, "\(error)")
    }

    @Test(arguments: [29, 30])
    func `a loader sends nothing after its load's limit`(pause: Int) async throws {
        let stage = Stage(), clock = ManualClock()
        let transport = ScriptedTransport { .token() }
        let loader = try RefreshTokenLoader(
            tokenURL: #require(URL(string: "https://as.example/token")), clientID: "me", transport: transport)
        let service = TokenService(
            environment: .driven(by: stage, clock: clock, wallClock: { Date(timeIntervalSince1970: 0) }, seed: 1)
        ) { _ in
            // The process is stopped before the request.
            clock.advance(by: .seconds(pause))
            return try await loader.loadToken(replacing: AccessToken("old", refreshToken: "r"))
        }
        let caller = stage.start { try await service.retrieveToken() }
        stage.run()
        #expect(transport.requests.isEmpty == (pause == 30))
        #expect((caller.value?.value == "abc") == (pause == 29))
    }

    @Test func `a transport that connects too late sends nothing, and its load's error says so unchanged`() async throws {
        let stage = Stage(), clock = ManualClock(), thrown = Lock<(any Error)?>(nil)
        let transport = ScriptedTransport {
            // The connection is established now, too late.
            clock.advance(by: .seconds(30))
            try LoadTime.check()
            return .token()
        }
        let loader = try RefreshTokenLoader(
            tokenURL: #require(URL(string: "https://as.example/token")), clientID: "me", transport: transport)
        let service = TokenService(
            environment: .driven(by: stage, clock: clock, wallClock: { Date(timeIntervalSince1970: 0) }, seed: 1)
        ) { _ in
            do {
                return try await loader.loadToken(replacing: AccessToken("old", refreshToken: "r"))
            } catch {
                thrown.withLock { $0 = error }
                throw error
            }
        }
        let caller = stage.start { try await service.retrieveToken() }
        stage.run()
        #expect(thrown.withLock { $0 } is NotSent)
        #expect((caller.error as? TokenServiceError)?.code == .loadTimedOut)
    }
}
