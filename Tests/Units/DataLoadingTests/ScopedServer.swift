import AccessTokens
import Foundation
import LoopbackServers
import TokenServiceConcurrency

/// A resource for each scope, such as `/a` for the scope `a`.
///
/// A token's value names its scopes, whatever its `scope` says.
final class ScopedServer: Sendable {
    final class Log: Sendable {
        private let lines = Lock<[String]>([])
        var all: [String] { lines.withLock { $0 } }
        func append(_ line: String) { lines.withLock { $0.append(line) } }
    }

    let log = Log()
    /// Once there is a line, it closes its connections without an answer.
    let silence = Log()
    private let server: LoopbackServer
    var url: URL { server.url.deletingLastPathComponent() }

    init(
        refusal: String = "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"SCOPE\"\r\n", status: Int = 403
    ) throws {
        server = try LoopbackServer { [log, silence] text in
            if !silence.all.isEmpty { return .bytes("") }
            let arrival = ResourceServer.Arrival(text: text), path = String(arrival.path.dropFirst())
            log.append("\(path) with \(arrival.token ?? "none")")
            if arrival.token?.split(separator: ".").contains(path[...]) ?? false { return ResourceServer.ok("ok") }
            return ResourceServer.status(status, refusal.replacing("SCOPE", with: path))
        }
    }

    static func token(_ scope: String, says: Bool = true) -> AccessToken {
        AccessToken(
            "t.\(scope.replacing(" ", with: "."))", lifetime: .seconds(3600), scope: says ? scope : nil,
            refreshToken: "r-\(scope)")
    }
}
