import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import AccessTokensOAuth
import AccessTokensTesting
import AsyncHTTPClient
import Foundation
import LoopbackServers
import NIOCore
import Synchronization
import Testing

@testable import OverAsyncHTTPClient

@Suite(.timeLimit(.minutes(5)))
struct `The token endpoint over AsyncHTTPClient` {
    /// The answers of `FoundationCrashTests`, each of which ends a process that uses `URLSession` on Linux.
    static let fatal = [
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n", "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n",
        "HTTP/1.1 302 Go\r\nLocation: //[::1]/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 307 Go\r\nLocation: //a%2fb/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 303 Go\r\nLocation: //a%40b/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 308 Go\r\nLocation: //a%00b/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775296\r\n\r\n",
        "HTTP/1.1 200 OK\r\n" + String(repeating: "a:\r\n", count: 20_000) + "Content-Length: 0\r\n\r\n",
    ]

    func request(to server: LoopbackServer) -> TransportRequest {
        TransportRequest(url: server.url, headers: ["Authorization": "Basic c2VjcmV0"], body: Data("a=1&b=2".utf8))
    }

    @Test func `an exchange posts headers and form, and returns status, headers and body`() async throws {
        let server = try LoopbackServer(answering: "HTTP/1.1 201 Fine\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nhello")
        let response = try await withClient(.forTokens) {
            try await AsyncHTTPClientTransport(client: $0).send(request(to: server))
        }
        #expect(response.status == 201 && response.header("retry-after") == "7" && response.body == Data("hello".utf8))
        let sent = try #require(await server.requests.first { _ in true })
        #expect(sent.hasPrefix("POST /token HTTP/1.1\r\n") && sent.hasSuffix("\r\n\r\na=1&b=2"))
        #expect(sent.contains("Authorization: Basic c2VjcmV0\r\n"))
    }

    @Test(arguments: Fault.ofConnections + Fault.ofAnswers + Fault.ofLifetimes)
    func `whatever a server does, the session goes on with the refresh token that the service has`(fault: Fault) async throws {
        let next = Mutex(fault.reply)
        let server = try LoopbackServer { _ in
            next.withLock { next in
                defer { next = Fault.answer(#"{"access_token":"good","token_type":"Bearer","expires_in":3600}"#) }
                return next
            }
        }
        try await withClient(.forTokens) { client in
            // A limit that must not pass elsewhere, however busy the machine is.
            let limit = if case .error(.timedOut, _) = fault.outcome { Duration.seconds(3) } else { Duration.seconds(20) }
            let loader = try RefreshTokenLoader(
                OAuthClient(
                    id: "me", authentication: .clientSecretBasic("client-s3cr3t"), tokenURL: server.url,
                    transport: AsyncHTTPClientTransport(client: client), timeLimit: limit))
            let tokens = TokenService(environment: .init(clock: ManualClock()), loader: loader)
            await tokens.replace(with: AccessToken("old-access", lifetime: .zero, refreshToken: "refresh-1"))
            do {
                let token = try await tokens.retrieveToken()
                guard case .token(let lifetime) = fault.outcome else { throw Unexpected.token }
                #expect(token.value == "new-access" && token.lifetime == lifetime)
                await tokens.invalidate(token)
            } catch let error as TokenServiceError {
                check(error, against: fault)
            }
            await tokens.retryNow()
            #expect(try await tokens.retrieveToken().value == "good")
        }
        var requests = server.requests.makeAsyncIterator()
        #expect(await requests.next()?.hasSuffix("refresh_token=refresh-1") == true)
        #expect(await requests.next()?.hasSuffix("refresh_token=\(fault.kept)") == true)
    }

    enum Unexpected: Error { case token }

    func check(_ error: TokenServiceError, against fault: Fault) {
        for secret in ["client-s3cr3t", "old-access", "new-access", "refresh-1", "refresh-2"] {
            #expect(!"\(error) \(error.underlying.map { "\($0)" } ?? "")".contains(secret))
        }
        #expect(error.remedy != .signIn)
        let cause = error.underlying as? OAuthError
        switch fault.outcome {
        case .token: Issue.record("there is a token: \(error)")
        case .error(.timedOut, _):
            #expect(cause?.underlying as? HTTPClientError == .deadlineExceeded, "\(error)")
        case .error(_, _) where fault.testDescription.contains("10 MiB"):
            #expect(cause?.code == .unreadableResponse, "\(error)")
        case .error(_, _) where fault.testDescription.contains("gzip"):
            #expect(cause?.code == .unreadableResponse, "\(error)")  // what isn't inflated isn't compared
        case .error(let code, _): #expect(cause?.code == code, "\(error)")
        }
    }

    @Test(arguments: [LoopbackServer.Reply.bytes("HTTP/1.1 400 No\r\n\r\n"), .bytes(""), .raw([21, 3, 3, 0, 2, 2, 40])])
    func `a failed handshake has sent nothing`(reply: LoopbackServer.Reply) async throws {
        let server = try LoopbackServer { _ in reply }
        let url = try #require(URL(string: server.url.absoluteString.replacing("http:", with: "https:")))
        let request = TransportRequest(url: url, headers: [:], body: Data("a=1".utf8))
        let error = try await withClient(.forTokens) { client in
            await #expect(throws: (any Error).self) { try await AsyncHTTPClientTransport(client: client).send(request) }
        }
        guard case TransportError.notSent? = error else { throw error ?? Unexpected.token }
    }

    @Test(arguments: [LoopbackServer.Reply.bytes(""), .reset("")])
    func `a server that hangs up after the form may have read it`(reply: LoopbackServer.Reply) async throws {
        let server = try LoopbackServer { _ in reply }
        let error = try await withClient(.forTokens) { client in
            await #expect(throws: (any Error).self) {
                try await AsyncHTTPClientTransport(client: client).send(request(to: server))
            }
        }
        #expect(!(error is OAuthError), "\(error as Any)")
    }

    @Test(arguments: fatal.indices)
    func `an answer that ends or stops a process with URLSession is an answer or an error`(index: Int) async throws {
        let server = try LoopbackServer(answering: Self.fatal[index])
        try await withClient(.forTokens) { client in
            do {
                let response = try await AsyncHTTPClientTransport(client: client).send(request(to: server))
                #expect([200, 302, 303, 307, 308].contains(response.status))
            } catch {
                #expect(["HTTP", "NIO", "Transport"].contains { "\(type(of: error))".hasPrefix($0) })
            }
        }
    }

    @Test func `a cancelled send ends at once, and so does its connection`() async throws {
        for answer in ["", "HTTP/1.1 200 OK\r\n\r\n{"] {
            let server = try LoopbackServer { _ in .unfinished(answer) }
            try await withClient(.forTokens) { client in
                let request = request(to: server)
                let send = Task { try await AsyncHTTPClientTransport(client: client).send(request) }
                _ = await server.requests.first { _ in true }
                send.cancel()
                await #expect(throws: CancellationError.self) { try await send.value }
                #expect(await server.departures.first { true } != nil)
            }
        }
    }

    @Test func `a client that has been shut down is an error that says so`() async throws {
        let client = HTTPClient(configuration: .forTokens)
        try await client.shutdown()
        let loader = try ClientCredentialsLoader(
            tokenURL: try #require(URL(string: "http://127.0.0.1:1/")), clientID: "a", clientSecret: "s",
            transport: AsyncHTTPClientTransport(client: client))
        let error = await #expect(throws: OAuthError.self) { try await loader.loadToken(replacing: nil) }
        #expect(error?.underlying as? HTTPClientError == .alreadyShutdown)
    }

    #if os(Linux)
    @Test func `waiting takes no processor, and an endless body no memory`() async {
        await #expect(processExitsWith: .success) {
            let client = HTTPClient(configuration: .forTokens)
            defer { client.shutdown { _ in } }
            let transport = AsyncHTTPClientTransport(client: client)
            let silent = try LoopbackServer { _ in .unfinished("") }
            let before = clock()
            _ = try? await transport.send(TransportRequest(url: silent.url, timeLimit: .seconds(2)))
            #expect(Double(clock() - before) / Double(CLOCKS_PER_SEC) < 0.5)
            for head in ["200 OK\r\n", "302 X\r\nLocation: /\r\n", "200 OK\r\nContent-Encoding: gzip\r\n"] {
                let hose = try LoopbackServer { _ in .endless("HTTP/1.1 \(head)\r\n", [UInt8](repeating: 32, count: 1 << 16)) }
                _ = try? await transport.send(TransportRequest(url: hose.url, timeLimit: .seconds(2)))
            }
            let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
            let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }
            let peak = try #require(Int(line?.filter(\.isNumber) ?? ""))
            #expect(peak < 128 << 10, "\(peak) KiB, the process itself included")
        }
    }
    #endif
}
