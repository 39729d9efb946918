import Foundation
import LoopbackServers
import TokenServiceConcurrency

/// The server side: an authorization server, and a server whose movies need one of its tokens.
///
/// It never answers a request for horror movies, and answers one for comedies only after ``showComedies()``.
final class MovieServer: Sendable {
    private let state = ServerState()
    private let authorization: LoopbackServer
    private let movies: LoopbackServer

    init() throws {
        authorization = try LoopbackServer { [state] _ in
            .json(#"{"access_token":"\#(state.issue())","token_type":"Bearer","expires_in":3600}"#)
        }
        movies = try LoopbackServer { [state] request in
            guard state.accepts(request) else { return .refusal }
            if request.contains("genre=horror") { return .unfinished("") }
            state.waitForComedies()
            return .json(#"[{"title":"Playtime","year":1967},{"title":"Brazil","year":1985}]"#)
        }
    }

    var tokenURL: URL { authorization.url }
    var moviesURL: URL { movies.url.deletingLastPathComponent() }

    /// How many tokens it has issued.
    var tokensIssued: Int { state.tokensIssued }

    /// An element for each request for movies.
    var questions: AsyncStream<String> { movies.requests }

    /// An element for each connection for movies that has ended, by its response or by the client.
    var departures: AsyncStream<Void> { movies.departures }

    /// Answers requests for comedies from now on.
    func showComedies() { state.showComedies() }

    /// Revokes all tokens.
    func revoke() { state.revoke() }
}

/// The state that the server's threads share.
private final class ServerState: Sendable {
    private let state = Lock((issued: 0, isRevoked: false))
    private let comedies = DispatchSemaphore(value: 0)

    var tokensIssued: Int { state.withLock { $0.issued } }

    func issue() -> String {
        state.withLock { state in
            state = (state.issued + 1, false)
            return "token-\(state.issued)"
        }
    }

    func revoke() { state.withLock { $0.isRevoked = true } }

    /// Whether the request carries the latest token.
    func accepts(_ request: String) -> Bool {
        let (issued, isRevoked) = state.withLock { $0 }
        return !isRevoked && request.contains("Authorization: Bearer token-\(issued)\r\n")
    }

    /// Blocks the server's own thread; one signal is enough for all requests.
    func waitForComedies() {
        comedies.wait()
        comedies.signal()
    }

    func showComedies() { comedies.signal() }
}

extension LoopbackServer.Reply {
    static let refusal = Self.bytes(
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error=\"invalid_token\"\r\nContent-Length: 0\r\n\r\n")

    static func json(_ text: String) -> Self {
        .bytes("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
    }
}
