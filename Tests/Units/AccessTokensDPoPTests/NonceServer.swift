import AccessTokens
import AccessTokensDPoP
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import TokenServiceConcurrency

/// An authorization server that rotates refresh tokens and nonces, and records what each request did.
///
/// It checks the proof first, as RFC 9449 §8 requires, and the grant only if the proof is valid. A test tells it when to
/// misbehave.
final class NonceServer: TokenTransport {
    struct State: Sendable {
        var requests: [TransportRequest] = []
        var proofs: Set<String> = []
        var nonce = 1
        /// How many requests a nonce is good for; `nil`: until it is changed.
        var uses: Int?
        var used = 0
        /// How many requests were refused because of their nonce.
        var refusals = 0
        /// How often each refresh token was presented with the current nonce, so that the server may have spent it.
        var presented: [String: Int] = [:]
        /// The refresh tokens that were spent, in order.
        var spent: [String] = []
        var issued = 0
        /// Answers in place of the server's own, in order.
        var script: [TransportResponse] = []
    }

    let state = Lock(State())
    /// Called with each request before it is answered.
    private let arrive: @Sendable (Int) async throws -> Void

    init(uses: Int? = nil, script: [TransportResponse] = [], arrive: @escaping @Sendable (Int) async throws -> Void = { _ in }) {
        self.arrive = arrive
        state.withLock {
            $0.uses = uses
            $0.script = script
        }
    }

    var facts: State { state.withLock { $0 } }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        let count = state.withLock { state in
            state.requests.append(request)
            return state.requests.count
        }
        try await arrive(count)
        return state.withLock { Self.answer(to: request, &$0) }
    }

    private static func answer(to request: TransportRequest, _ state: inout State) -> TransportResponse {
        if !state.script.isEmpty { return state.script.removeFirst() }
        let parameters = String(decoding: request.body, as: UTF8.self).split(separator: "&")
        let presented = parameters.first { $0.hasPrefix("refresh_token=") }?.dropFirst(14)
        if let presented, SentProof(request.headers["DPoP"])?["nonce"] == "nonce-\(state.nonce)" {
            state.presented[String(presented), default: 0] += 1
        }
        guard let proof = SentProof(request.headers["DPoP"]), proof["htm"] == "POST", proof["ath"] == nil,
            state.proofs.insert(proof["jti"] ?? "").inserted
        else { return .refusal("invalid_dpop_proof") }
        guard proof["nonce"] == "nonce-\(state.nonce)" else {
            state.refusals += 1
            return .refusal("use_dpop_nonce", nonce: "nonce-\(state.nonce)")
        }
        state.used += 1
        if let uses = state.uses, state.used >= uses { (state.nonce, state.used) = (state.nonce + 1, 0) }
        guard let presented else {
            return .bound(#""expires_in":60"#, nonce: "nonce-\(state.nonce)")
        }
        // A token that is presented twice looks stolen (RFC 9700 §4.14.2).
        guard presented == "r\(state.issued)" else { return .refusal("invalid_grant") }
        state.spent.append(String(presented))
        state.issued += 1
        return .bound(#""expires_in":60,"refresh_token":"r\#(state.issued)""#, nonce: "nonce-\(state.nonce)")
    }
}

extension TransportResponse {
    static func refusal(_ error: String, status: Int = 400, nonce: String? = nil, headers: [String: String] = [:])
        -> TransportResponse
    {
        TransportResponse(
            status: status, headers: headers.merging(nonce.map { ["dpop-nonce": $0] } ?? [:]) { $1 },
            body: Data(#"{"error":"\#(error)"}"#.utf8))
    }

    static func bound(_ members: String, type: String = "DPoP", nonce: String? = nil) -> TransportResponse {
        TransportResponse(
            status: 200, headers: nonce.map { ["DPoP-Nonce": $0] } ?? [:],
            body: Data(#"{"access_token":"abc","token_type":"\#(type)",\#(members)}"#.utf8))
    }
}

func url(_ text: String) -> URL {
    // The tests' own texts are URLs.
    URL(string: text) ?? URL(filePath: "/")
}

extension OAuthClient {
    static func test(
        _ key: (any TokenProof)?, _ transport: some TokenTransport, authentication: ClientAuthentication = .publicClient,
        tokenURL: String = "https://as.example/token", acceptedTokenTypes: Set<String>? = nil
    ) throws -> OAuthClient {
        try OAuthClient(
            id: "app", authentication: authentication, tokenURL: url(tokenURL), acceptedTokenTypes: acceptedTokenTypes,
            proof: key,
            transport: transport)
    }
}
