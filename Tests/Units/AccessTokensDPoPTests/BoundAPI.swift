import AccessTokensTesting
import Foundation
import LoopbackServers
import TokenServiceConcurrency

/// An API that accepts bound tokens, each with a proof that contains the API's nonce.
final class BoundAPI: Sendable {
    struct State: Sendable {
        var arrivals: [String] = []
        var proofs: Set<String> = []
        var nonce = 1
        /// A nonce is good for a second of this clock.
        let clock = ManualClock()
        var current: String { "nonce-\(nonce + Int(clock.now.offset / .seconds(1)))" }
        var refusals: [String: Int] = [:]
        var served: [String: Int] = [:]
        var problems: [String] = []
    }

    final class Shared: Sendable { let state = Lock(State()) }

    let shared = Shared()
    private let server: LoopbackServer
    var url: URL { server.url.deletingLastPathComponent() }
    var facts: State { shared.state.withLock { $0 } }

    /// - Parameters:
    ///   - rotates: Whether the nonce changes after each request that is served.
    ///   - script: Answers in place of the server's own, by the number of the request.
    init(rotates: Bool = false, script: [Int: String] = [:]) throws {
        server = try LoopbackServer { [shared] text in
            shared.state.withLock { state in .kept(Self.answer(text, rotates, script, &state)) }
        }
    }

    static func header(_ name: String, in text: String) -> String? {
        let head = text.components(separatedBy: "\r\n\r\n")[0].components(separatedBy: "\r\n").dropFirst()
        return head.first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
            .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
    }

    private static func answer(_ text: String, _ rotates: Bool, _ script: [Int: String], _ state: inout State) -> String {
        state.arrivals.append(text)
        if let answer = script[state.arrivals.count] { return answer }
        let path = text.split(separator: " ")[1]
        let name = String(path)
        guard let proof = SentProof(header("DPoP", in: text)), let token = header("Authorization", in: text),
            token.hasPrefix("DPoP "), proof["htm"].map({ text.hasPrefix("\($0) ") }) == true, proof["ath"] != nil,
            proof["htu"]?.hasSuffix(path.prefix { $0 != "?" }) == true, proof["htu"]?.hasPrefix("http://127.0.0.1:") == true
        else {
            state.problems.append("no proof in \(text)")
            return refusal("invalid_dpop_proof")
        }
        if !state.proofs.insert(proof["jti"] ?? "").inserted { state.problems.append("a proof came twice") }
        guard proof["nonce"] == state.current else {
            state.refusals[name, default: 0] += 1
            return refusal("use_dpop_nonce", "DPoP-Nonce: \(state.current)\r\n")
        }
        state.served[name, default: 0] += 1
        if rotates { state.nonce += 1 }
        return "HTTP/1.1 200 OK\r\nDPoP-Nonce: \(state.current)\r\nContent-Length: 2\r\n\r\nok"
    }

    static func refusal(_ error: String, _ headers: String = "", status: Int = 401) -> String {
        "HTTP/1.1 \(status) No\r\nWWW-Authenticate: Bearer realm=\"x\"\r\nWWW-Authenticate: DPoP error=\"\(error)\", algs=\"ES256\"\r\n"
            + "\(headers)Content-Length: 2\r\n\r\nno"
    }
}
