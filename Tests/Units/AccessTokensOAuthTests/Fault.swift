import AccessTokensOAuth
import LoopbackServers
import Testing

/// A server's fault, and the expected result when it happens in the answer to a refresh token.
struct Fault: Sendable, CustomTestStringConvertible {
    enum Outcome: Sendable {
        case error(OAuthError.Code, retryAfter: Duration? = nil)
        case token(lifetime: Duration)
    }

    let testDescription: String
    let reply: LoopbackServer.Reply
    let outcome: Outcome

    /// The refresh token that the next load must use: the server's replacement, if the client can know it.
    let kept: String

    init(_ name: String, _ reply: LoopbackServer.Reply, _ outcome: Outcome, kept: String = "refresh-1") {
        testDescription = name
        self.reply = reply
        self.outcome = outcome
        self.kept = kept
    }

    /// A complete answer.
    static func answer(
        _ body: String, status: Int = 200, type: String = "application/json", headers: String = ""
    ) -> LoopbackServer.Reply {
        .bytes(
            "HTTP/1.1 \(status) X\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)")
    }

    /// A token response, with a new refresh token, that has this member too.
    static func granting(_ member: String) -> LoopbackServer.Reply {
        answer(#"{"access_token":"new-access","token_type":"Bearer","refresh_token":"refresh-2",\#(member)}"#)
    }
}

// RFC 6749 §5.1 and §5.2, RFC 9110 §10.2.3, RFC 8259 §6 and §8.1, RFC 9700 §4.12.
extension Fault {
    static let headers = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
    static let beginning = #"{"access_token":"new-access","token_type":"Bearer","refresh_token":"refresh-2","#

    /// A connection that ends between two lines of the header is missing on purpose: before Swift 6.4, it makes Foundation crash
    /// the process on Linux (swift-corelibs-foundation#5285), and no code outside of it can prevent that.
    static let ofConnections = [
        Fault("never answers", .unfinished(""), .error(.timedOut)),
        Fault("never ends the header", .unfinished("HTTP/1.1 200 OK\r\nContent-"), .error(.timedOut)),
        Fault("never ends the body", .unfinished(headers + beginning), .error(.timedOut)),
        Fault("drips byte by byte", .dripping(headers, beginning), .error(.timedOut)),
        Fault("closes without an answer", .bytes(""), .error(.connectionFailed)),
        Fault("closes mid-body", .bytes(headers + beginning), .error(.connectionFailed)),
        Fault(
            "closes mid-body without a length", .bytes("HTTP/1.1 200 OK\r\n\r\n" + beginning), .error(.unreadableResponse),
            kept: "refresh-2"),
        Fault(
            "closes mid-chunk", .bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{"), .error(.connectionFailed)),
        Fault("resets at once", .reset(""), .error(.connectionFailed)),
        Fault("speaks no HTTP", .bytes("SSH-2.0-OpenSSH_9.2\r\n"), .error(.connectionFailed)),
        Fault("announces gzip and sends none", answer("{}", headers: "Content-Encoding: gzip\r\n"), .error(.connectionFailed)),
        Fault("sends 10 MiB", answer(#"{"a":"\#(String(repeating: "x", count: 10 << 20))"}"#), .error(.unreadableResponse)),
        Fault(
            "sends 10 MiB without a length", .bytes("HTTP/1.1 200 OK\r\n\r\n" + String(repeating: " ", count: 10 << 20)),
            .error(.unreadableResponse)),
    ]

    static let ofAnswers = [
        Fault("redirects", answer("", status: 307, headers: "Location: http://127.0.0.1:9/\r\n"), .error(.redirected)),
        Fault("redirects to nowhere", answer("", status: 302), .error(.redirected)),
        Fault("sends HTML", answer("<html>refresh-1</html>", type: "text/html"), .error(.unreadableResponse)),
        Fault("refuses in HTML", answer("<html>refresh-1</html>", status: 403, type: "text/html"), .error(.refused)),
        Fault("sends nothing", answer(""), .error(.unreadableResponse)),
        Fault("refuses with nothing", answer("", status: 400), .error(.refused)),
        Fault("has no content", .bytes("HTTP/1.1 204 No\r\n\r\n"), .error(.unreadableResponse)),
        Fault(
            "sends invalid UTF-8",
            .raw(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n".utf8) + [0x7B, 0xC3, 0x28, 0x7D]),
            .error(.unreadableResponse)),
        Fault("sends an array", answer("[1]"), .error(.unreadableResponse)),
        Fault("sends a number as token", answer(#"{"access_token":1,"token_type":"Bearer"}"#), .error(.unreadableResponse)),
        Fault("nests deeply", answer(String(repeating: "[", count: 500_000)), .error(.unreadableResponse)),
        Fault("writes an error into a 200", answer(#"{"error":"server_error"}"#), .error(.refused)),
        Fault("challenges", answer("", status: 401, headers: "WWW-Authenticate: Basic realm=\"x\"\r\n"), .error(.refused)),
        Fault(
            "is too busy", answer("", status: 429, headers: "Retry-After: 120\r\n"), .error(.refused, retryAfter: .seconds(120))),
        Fault(
            "is down until a date", answer("", status: 503, headers: "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
            .error(.refused, retryAfter: .seconds(30))),
        Fault("is down for an odd time", answer("", status: 503, headers: "Retry-After: soon\r\n"), .error(.refused)),
        Fault(
            "issues a token of another type", answer(#"{"access_token":"a","token_type":"mac"}"#), .error(.unsupportedTokenType)),
    ]

    static let ofLifetimes = [
        Fault("lifetime as a string", granting(#""expires_in":"50""#), .token(lifetime: .seconds(50)), kept: "refresh-2"),
        Fault("lifetime of nonsense", granting(#""expires_in":"soon""#), .token(lifetime: .seconds(300)), kept: "refresh-2"),
        Fault("negative lifetime", granting(#""expires_in":-1"#), .token(lifetime: .seconds(300)), kept: "refresh-2"),
        Fault("lifetime NaN", granting(#""expires_in":NaN"#), .token(lifetime: .seconds(300)), kept: "refresh-2"),
        Fault("lifetime 1e300", granting(#""expires_in":1e300"#), .token(lifetime: .seconds(315_360_000)), kept: "refresh-2"),
        Fault("lifetime 1e999", granting(#""expires_in":1e999"#), .token(lifetime: .seconds(300)), kept: "refresh-2"),
        Fault("no lifetime", granting(#""x":1"#), .token(lifetime: .seconds(300)), kept: "refresh-2"),
        Fault("scope of a wrong type", granting(#""scope":[1]"#), .error(.unreadableResponse), kept: "refresh-2"),
    ]
}
