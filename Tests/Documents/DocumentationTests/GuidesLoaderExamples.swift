import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

// “Writing a loader”, run. `GuideTests` compares the page with this file.

private struct LoginService: Sendable {
    let log: GuideLog

    func logIn(refreshToken: String?) async throws -> AccessToken {
        log.add(refreshToken ?? "none")
        return AccessToken("a", refreshToken: "r")
    }
}

private struct DeviceLoader: TokenLoader {
    let url: URL
    let deviceKey: String
    var transport: any TokenTransport = URLSessionTransport()

    @concurrent func loadToken(
        replacing previous: AccessToken?
    ) async throws -> AccessToken {
        let key = previous?.refreshToken ?? deviceKey
        let request = TransportRequest(
            url: url, headers: ["Content-Type": "application/json"],
            body: try JSONEncoder().encode(["key": key]))
        let response = try await transport.send(request)
        guard response.status == 200 else {
            throw LoginFailure(status: response.status)
        }
        let answer = try JSONDecoder().decode(
            Answer.self, from: response.body)
        return AccessToken(
            answer.token, lifetime: .seconds(answer.seconds),
            refreshToken: answer.next ?? previous?.refreshToken)
    }

    private struct Answer: Decodable {
        let token: String
        let seconds: Int
        let next: String?
    }
}

private struct LoginFailure: TokenLoadFailure {
    let status: Int

    var remedy: TokenServiceError.Remedy {
        switch status {
        case 401: .signIn  // the key is no longer accepted
        case 403: .clientRegistration  // this version is locked out
        default: .retry  // the network, a busy server, anything unknown
        }
    }
}

@Suite(.timeLimit(.minutes(10)), .inRealTime) struct `Writing a loader` {
    private func loader(_ transport: AnsweringTransport) throws -> DeviceLoader {
        let url = try #require(URL(string: "https://login.example/device"))
        return DeviceLoader(url: url, deviceKey: "device", transport: transport)
    }

    @Test func `a closure is a loader, and is handed the token to replace`() async throws {
        let log = GuideLog()
        let login = LoginService(log: log)
        let tokens = TokenService { previous in
            try await login.logIn(refreshToken: previous?.refreshToken)
        }
        let token = try await tokens.retrieveToken()
        await tokens.invalidate(token)
        _ = try? await tokens.retrieveToken()
        #expect(log.lines == ["none", "r"])
    }

    @Test func `a program's own loader keeps the refresh token if the server sends no new one`() async throws {
        let transport = AnsweringTransport { form in
            let next = form.contains("device") ? #", "next": "r1""# : ""
            return (200, #"{"token": "a\#(UUID())", "seconds": 3600\#(next)}"#)
        }
        let tokens = TokenService(loader: try loader(transport))
        for _ in 1...3 { await tokens.invalidate(try await tokens.retrieveToken()) }
        #expect(transport.forms.lines == [#"{"key":"device"}"#, #"{"key":"r1"}"#, #"{"key":"r1"}"#])
    }

    @Test(arguments: [(401, TokenServiceError.Remedy.signIn, 1), (403, .clientRegistration, 1), (503, .retry, 2)])
    func `the remedy decides whether the next caller asks the server`(status: Int, remedy: TokenServiceError.Remedy, loads: Int)
        async throws
    {
        let transport = AnsweringTransport { _ in (status, "") }
        let tokens = TokenService(loader: try loader(transport))
        for _ in 1...2 {
            let error = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
            #expect(error?.remedy == remedy)
        }
        #expect(transport.forms.lines.count == loads)
    }

    @Test func `OAuth loaders need a URL and a client`() async throws {
        let (transport, secret) = (AnsweringTransport(), "s")
        let tokenURL = try #require(URL(string: "https://login.example/token"))
        let machine = TokenService(
            loader: try ClientCredentialsLoader(
                tokenURL: tokenURL, clientID: "reports", clientSecret: secret,
                scope: "api.read", transport: transport))
        let user = TokenService(
            loader: try RefreshTokenLoader(
                tokenURL: tokenURL, clientID: "app", transport: transport))
        #expect(try await machine.retrieveToken().value == "a")
        let error = await #expect(throws: TokenServiceError.self) { try await user.retrieveToken() }
        #expect(error?.remedy == .signIn && transport.forms.lines.count == 1, "nobody has signed in, and nothing was sent")
        await user.replace(with: AccessToken("expired", lifetime: .zero, refreshToken: "r"))
        #expect(try await user.retrieveToken().value == "a")
        #expect(transport.forms.lines.last?.contains("refresh_token=r") == true)
    }
}
