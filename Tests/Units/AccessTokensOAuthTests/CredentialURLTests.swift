import AccessTokens
import AccessTokensOAuth
import Foundation
import LoopbackServers
import TestBudgets
import Testing

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct CredentialURLTests {
    func server(_ body: String, status: String = "200 OK", headers: String = "") throws -> LoopbackServer {
        try LoopbackServer(
            answering: "HTTP/1.1 \(status)\r\n\(headers)Content-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)")
    }

    /// With a limit that a loaded machine doesn't reach.
    func credential(_ url: URL, _ headers: [String: String] = [:], member: String? = nil) throws -> Credential {
        try Credential.url(url, headers: headers, member: member, timeLimit: .seconds(300))
    }

    func problem(_ url: Credential) async throws -> OAuthError {
        let error = try await #require(throws: OAuthError.self) { try await url.read() }
        #expect(error.code == .credentialsUnavailable && error.remedy == .retry && !error.mayBeUnderWay)
        #expect(!texts(error).contains("hush"))
        return error
    }

    @Test func `a credential is requested with GET and the given headers`() async throws {
        let server = try server(" token\n")
        let url = try credential(server.url.appending(path: "x"), ["Metadata-Flavor": "Google"])
        #expect(try await url.read() == "token")
        let sent = try #require(await server.requests.first { _ in true })
        #expect(sent.hasPrefix("GET /token/x HTTP/1.1\r\n") && sent.contains("\r\nMetadata-Flavor: Google\r\n"))
    }

    @Test(arguments: [
        #"{"value":"","count":1}"#, #"{"count":1}"#, #"{"value":"a hush","value":"b hush"}"#, #"{"value":["hush"]}"#,
        #"{"value":"hush""#, "hush", "",
    ])
    func `an answer without the member is an error that shows nothing of it`(body: String) async throws {
        let url = try credential(server(body).url, ["Authorization": "bearer hush"], member: "value")
        _ = try await problem(url)
    }

    @Test func `a status other than success is an error that shows it`() async throws {
        let busy = try server("hush", status: "429 Busy", headers: "Retry-After: 7\r\n")
        let error = try await problem(credential(busy.url))
        #expect(error.status == 429 && error.retryAfter == .seconds(7))
        #expect("\(error)".contains("the URL at 127.0.0.1 answered with status 429"))
    }

    @Test func `a Retry-After date counts from the answer's own Date`() async throws {
        let dates = "Date: Sun, 06 Nov 1994 08:49:07 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:27 GMT\r\n"
        let busy = try server("hush", status: "503 Busy", headers: dates)
        #expect(try await problem(credential(busy.url)).retryAfter == .seconds(20))
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect is not followed`(status: Int) async throws {
        let thief = try server("hush")
        let server = try server("hush", status: "\(status) Elsewhere", headers: "Location: \(thief.url)\r\n")
        #expect(try await problem(credential(server.url, ["Authorization": "bearer hush"])).status == status)
        // The thief's first request is this one, so it received none before.
        _ = try await credential(thief.url.appending(path: "ours")).read()
        #expect(try #require(await thief.requests.first { _ in true }).hasPrefix("GET /token/ours "))
    }

    @Test func `an answer that is too long or too slow is given up`() async throws {
        let long = try server(String(repeating: "a", count: 65_537))
        #expect("\(try await problem(credential(long.url)))".contains("provides more than 64 KiB"))
        let silent = try LoopbackServer { _ in .unfinished("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhush") }
        let error = try await problem(.url(silent.url, timeLimit: .milliseconds(200)))
        #expect("\(error)".contains("did not answer completely within 0.2 seconds"))
    }

    @Test(arguments: [
        "http://as.example/hush", "ftp://as.example/hush", "https://me:hush@as.example/", "https:///hush",
        "http://169.254.1.1/hush",
    ])
    func `a URL that others can read is refused`(text: String) throws {
        let url = try #require(URL(string: text))
        let error = try #require(throws: OAuthError.self) { try Credential.url(url) }
        #expect(error.code == .invalidConfiguration && !texts(error).contains("hush"))
    }

    @Test(arguments: [("A b", "x"), ("", "x"), ("A", "hush\r\nHost: other")])
    func `a header whose name or value could inject another one is refused`(name: String, value: String) throws {
        let url = try #require(URL(string: "http://169.254.169.254/metadata"))
        #expect(!texts(try Credential.url(url, headers: ["A": "hush"])).contains("hush"))
        let error = try #require(throws: OAuthError.self) { try Credential.url(url, headers: [name: value]) }
        #expect(error.code == .invalidConfiguration && !texts(error).contains("hush"))
    }
}
