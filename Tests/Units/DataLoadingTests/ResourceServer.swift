import AccessTokens
import AccessTokensTesting
import DataLoading
import Foundation
import LoopbackServers
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A server whose resources need a token of a simulated authorization server; a test scripts its answers, right or wrong.
struct ResourceServer: Sendable {
    /// One request, as it arrived.
    struct Arrival: Sendable {
        let text: String

        var line: String { String(text.prefix { $0 != "\r\n" }) }
        var path: String { line.components(separatedBy: " ").dropFirst().first ?? "" }
        var body: String { text.components(separatedBy: "\r\n\r\n").dropFirst().joined(separator: "\r\n\r\n") }
        var token: String? { header("Authorization")?.replacingOccurrences(of: "Bearer ", with: "") }

        func header(_ name: String) -> String? {
            let lines = text.components(separatedBy: "\r\n\r\n")[0].components(separatedBy: "\r\n").dropFirst()
            return lines.first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
                .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
        }
    }

    let authorizationServer = SimulatedAuthorizationServer(clock: ManualClock(), keepsOneTokenValid: false)
    let tokens: TokenService
    let arrivals: Arrivals
    private let server: LoopbackServer

    /// Everything that arrived so far.
    final class Arrivals: Sendable {
        private let arrived = Lock<[Arrival]>([])
        var all: [Arrival] { arrived.withLock { $0 } }
        func append(_ arrival: Arrival) { arrived.withLock { $0.append(arrival) } }
    }

    /// Starts a server; `answer` is called for every request that carries a valid token, and by default only for those.
    ///
    /// - Parameter refusals: How many requests must be due to be refused before the first of them is.
    init(
        refusal: String = Self.invalidToken, needsToken: Bool = true, refusals: Int = 1,
        answering answer: @escaping @Sendable (Arrival) -> LoopbackServer.Reply = { Self.ok($0.path) }
    ) throws {
        let arrivals = Arrivals()
        let authorizationServer = authorizationServer
        let refused = Lock(0), gate = Gate()
        server = try LoopbackServer { text in
            let arrival = Arrival(text: text)
            arrivals.append(arrival)
            let isValid = arrival.token.map { authorizationServer.accepts(AccessToken($0)) } ?? false
            if isValid || !needsToken { return answer(arrival) }
            let count = refused.withLock { count in
                count += 1
                return count
            }
            if count >= refusals { gate.open() }
            gate.wait()
            return .bytes(refusal)
        }
        self.arrivals = arrivals
        tokens = TokenService(environment: .init(clock: ManualClock()), loader: authorizationServer.loader)
    }

    static let invalidToken = answer(
        "401 No", "WWW-Authenticate: Bearer realm=\"x\", error=\"invalid_token\"\r\n", "no")

    static func ok(_ body: String, headers: String = "") -> LoopbackServer.Reply { .bytes(answer("200 OK", headers, body)) }

    static func status(_ status: Int, _ headers: String = "", body: String = "") -> LoopbackServer.Reply {
        .bytes(answer("\(status) X", headers, body))
    }

    /// Says that the connection ends, since the server ends it: in a storm libcurl 8.23 takes ended ones for new requests until it
    /// gives up.
    private static func answer(_ status: String, _ headers: String, _ body: String) -> String {
        "HTTP/1.1 \(status)\r\n\(headers)Connection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    var url: URL { server.url.deletingLastPathComponent() }
    var requests: AsyncStream<String> { server.requests }
    var departures: AsyncStream<Void> { server.departures }

    func url(_ path: String) -> URL { url.appending(path: path) }

    func factory(origins: [URL]? = nil, session: URLSession = .shared) throws -> DataLoaderFactory {
        DataLoaderFactory(session: session, tokens: try OriginTokens(tokens, for: origins ?? [url]))
    }

    func loader() throws -> DataLoader { try factory().makeLoader() }
}
