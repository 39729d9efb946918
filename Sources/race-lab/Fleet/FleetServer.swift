import AccessTokens
import Foundation
import LoopbackServers
import TokenServiceConcurrency

/// The authorization server of a fleet, on the loopback interface: it rotates refresh tokens and forgives nothing.
///
/// Each process has a path of its own, `/token/PROCESS`, by which the server knows who asks.
final class FleetServer: Sendable {
    private let server: LoopbackServer
    private let book: Book

    /// What the server's threads share.
    private final class Book: Sendable {
        let ledger = Lock(FleetLedger())
    }

    /// - Parameter report: Told each exchange that was decided, before its answer leaves.
    init(report: @escaping @Sendable (_ token: Int?, _ process: Int32, FleetLedger.Answer) -> Void) throws {
        let book = Book()
        self.book = book
        server = try LoopbackServer { request in
            let (process, token) = Self.parts(of: request)
            let answer = book.ledger.withLock { $0.present(token, by: process) }
            report(token, process, answer)
            // The server's thread for this connection: a slow network.
            Thread.sleep(forTimeInterval: FleetGrant.latency)
            return Self.reply(answer)
        }
    }

    var url: URL { server.url }

    func signIn() -> AccessToken { FleetGrant.token(book.ledger.withLock { $0.signIn() }) }

    static func parts(of request: String) -> (process: Int32, token: Int?) {
        let path = request.split(separator: " ", maxSplits: 2).dropFirst().first ?? ""
        let field = request.components(separatedBy: "refresh_token=").last?.prefix { $0 != "&" }
        return (
            path.split(separator: "/").last.flatMap { Int32($0) } ?? 0, field.flatMap { FleetGrant.number(ofRefresh: .init($0)) }
        )
    }

    private static func reply(_ answer: FleetLedger.Answer) -> LoopbackServer.Reply {
        let status: String, body: String
        if case .issued(let number) = answer, let refreshToken = FleetGrant.token(number).refreshToken {
            status = "200 OK"
            body =
                #"{"access_token":"\#(FleetGrant.token(number).value)","refresh_token":"\#(refreshToken)","#
                + #""token_type":"Bearer","expires_in":\#(FleetGrant.lifetime.components.seconds)}"#
        } else {
            status = "400 Bad Request"
            body = #"{"error":"invalid_grant"}"#
        }
        // libcurl would send a request again if a connection that it kept were closed.
        return .bytes(
            "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
    }
}
