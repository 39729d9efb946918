import AccessTokens
import AccessTokensHTTP
import AccessTokensOAuth
import AsyncHTTPClient
import Foundation
import LoopbackServers
import NIOCore
import Synchronization
import Testing

@testable import OverAsyncHTTPClient

/// The same as `FaultTests` of the package's own tests, which run over `URLSession`: the faults of connections in each kind of
/// request, and the answers that end a process there.
@Suite(.timeLimit(.minutes(5)))
struct `Every fault of the test server over AsyncHTTPClient` {
    static let secrets = ["client-s3cr3t", "old-access", "new-access", "refresh-1", "refresh-2", "bWU6Y2xpZW50LXMzY3IzdA=="]
    static let withoutToken = Fault.ofConnections + Fault.ofAnswers
    static let grants: [Grant] = [
        .authorizationCode("refresh-1", verifier: "verifier"), .jwtBearer("refresh-1"),
        .tokenExchange(subject: "refresh-1", type: .jwt),
        Grant(type: "urn:ietf:params:oauth:grant-type:device_code", ["device_code": "refresh-1"]),
    ]

    /// Lets a client send requests to a server, whose first answer is this one, and whose later ones are tokens.
    static func withClient(_ first: LoopbackServer.Reply, timesOut: Bool, _ body: (OAuthClient, URL) async throws -> Void)
        async throws
    {
        let next = Mutex(first)
        let server = try LoopbackServer { _ in
            next.withLock { next in
                defer { next = Fault.answer(#"{"access_token":"good","token_type":"Bearer","expires_in":3600}"#) }
                return next
            }
        }
        let limit = Duration.seconds(timesOut ? 2 : 30)
        try await RecipesTests.withClient(.forTokens) { client in
            let time = try await ContinuousClock().measure {
                try await body(
                    OAuthClient(
                        id: "me", authentication: .clientSecretBasic("client-s3cr3t"), tokenURL: server.url,
                        transport: AsyncHTTPClientTransport(client: client), timeLimit: limit,
                        wallClock: { Date(timeIntervalSince1970: 784_111_747) }), server.url)
            }
            #expect(time < .seconds(30), "it froze")
        }
    }

    static func withClient(_ fault: Fault, _ body: (OAuthClient, URL) async throws -> Void) async throws {
        let timesOut = if case .error(.timedOut, _) = fault.outcome { true } else { false }
        try await withClient(fault.reply, timesOut: timesOut, body)
    }

    static func check(_ error: any Error, against fault: Fault, isToken: Bool = true) {
        for secret in secrets { #expect(!texts(error).contains(secret)) }
        guard let error = error as? OAuthError, case .error(let code, let retryAfter) = fault.outcome else {
            Issue.record("\(error)")
            return
        }
        #expect(error.remedy != .signIn && error.retryAfter == retryAfter)
        switch fault.testDescription {
        case _ where code == .timedOut: #expect(error.underlying as? HTTPClientError == .deadlineExceeded, "\(error)")
        case let name where name.contains("10 MiB"): #expect(error.code == .unreadableResponse, "\(error)")
        // A compressed body isn't inflated, so its contents can't be checked.
        case let name where name.contains("gzip"): #expect(error.code == .unreadableResponse, "\(error)")
        case _ where code == .unsupportedTokenType && !isToken: #expect(error.code == .unreadableResponse, "\(error)")
        default: #expect(error.code == code, "\(error)")
        }
    }

    @Test(arguments: withoutToken)
    func `a client's own load ends with the same error`(fault: Fault) async throws {
        try await Self.withClient(fault) { client, _ in
            let loader = try ClientCredentialsLoader(client)
            let error = try await #require(throws: OAuthError.self) { try await loader.loadToken(replacing: nil) }
            Self.check(error, against: fault)
            #expect(try await loader.loadToken(replacing: nil).value == "good")
        }
    }

    @Test(arguments: withoutToken + Fault.ofLifetimes, grants)
    func `an exchange loses no refresh token and shows nothing`(fault: Fault, grant: Grant) async throws {
        let isSalvaged = fault.kept == "refresh-2" && !grant.isRepeatable
        try await Self.withClient(fault) { client, _ in
            do {
                let token = try await client.token(for: grant).token
                guard case .token(let lifetime) = fault.outcome else {
                    Issue.record("no token was expected")
                    return
                }
                #expect(token.lifetime == lifetime && token.refreshToken == "refresh-2")
            } catch let salvaged as SalvagedGrant {
                #expect(isSalvaged && salvaged.grant.refreshToken == "refresh-2")
                Self.check(salvaged.reason, against: fault)
            } catch {
                #expect(!isSalvaged)
                Self.check(error, against: fault)
            }
            let next = try await client.token(for: grant).token
            #expect(next.value == "good")
        }
    }

    @Test(arguments: withoutToken, 0..<3)
    func `a request for no token ends with an error and shows nothing`(fault: Fault, request: Int) async throws {
        try await Self.withClient(fault) { client, url in
            let error = try await #require(throws: OAuthError.self) {
                try await Self.send(request, client, url)
            }
            Self.check(error, against: fault, isToken: false)
        }
    }

    static func send(_ request: Int, _ client: OAuthClient, _ url: URL) async throws {
        switch request {
        case 0: _ = try await DeviceSignIn(client, deviceAuthorizationURL: url, scope: "a")
        case 1: _ = try await client.introspect("refresh-1", at: url)
        case 2: _ = try await client.members(for: ["token": "refresh-1"], at: url).decoded(as: [String].self)
        case 3: _ = try await ClientCredentialsLoader(client).loadToken(replacing: nil)
        case 4: _ = try await RefreshTokenLoader(client).loadToken(replacing: AccessToken("old", refreshToken: "refresh-1"))
        default: _ = try await client.token(for: grants[request - 5])
        }
    }

    @Test(arguments: `The token endpoint over AsyncHTTPClient`.fatal.indices, 0..<9)
    func `an answer that ends a process with URLSession is an error, and the next one is a token`(index: Int, request: Int)
        async throws
    {
        let answer = LoopbackServer.Reply.bytes(`The token endpoint over AsyncHTTPClient`.fatal[index])
        try await Self.withClient(answer, timesOut: false) { client, url in
            let error = try await #require(throws: OAuthError.self) { try await Self.send(request, client, url) }
            #expect(error.remedy != .signIn, "\(error)")
            let next = try await client.token(for: .clientCredentials()).token
            #expect(next.value == "good")
        }
    }

    #if os(Linux)
    @Test func `no answer takes more than 64 MiB, and no silence a processor`() async {
        await #expect(processExitsWith: .success) {
            func peak() throws -> Int {
                let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
                let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }
                return try #require(Int(line?.filter(\.isNumber) ?? "")) >> 10
            }
            let all = Fault.ofConnections + Fault.ofAnswers + Fault.ofLifetimes
            // The tests' own server has its texts in this process, too.
            _ = all.map { "\($0.reply)".utf8.count }
            var before = try peak(), worst = 0, silent = 0.0
            for fault in all {
                try await Self.withClient(fault) { client, url in
                    let start = clock()
                    _ = try? await client.members(for: ["a": "b"], at: url)
                    if case .error(.timedOut, _) = fault.outcome { silent = max(silent, Double(clock() - start) / 1e6) }
                }
                let now = try peak()
                (worst, before) = (max(worst, now - before), now)
            }
            #expect(worst <= 64 && silent < 0.5, "\(worst) MiB, \(silent) s")
        }
    }
    #endif
}
