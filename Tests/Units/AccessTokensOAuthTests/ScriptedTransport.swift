import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import Testing
import TokenServiceConcurrency

/// A transport without a network: it records the requests and returns scripted answers.
final class ScriptedTransport: TokenTransport {
    private let sent = Lock<[TransportRequest]>([])
    private let answer: @Sendable () throws -> TransportResponse

    init(_ answer: @escaping @Sendable () throws -> TransportResponse) {
        self.answer = answer
    }

    /// Everything that was sent, in order; copied under the lock, since Thread Sanitizer doesn't see that the count of references
    /// keeps a reader of an array apart from the one who appends to it in place.
    var requests: [TransportRequest] { sent.withLock { $0.map(\.self) } }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        sent.withLock { $0.append(request) }
        return try answer()
    }
}

extension TransportError {
    /// The name of the case.
    var kind: String {
        switch self {
        case .notSent: "notSent"
        case .connectionLost: "connectionLost"
        case .timedOut: "timedOut"
        case .tooLong: "tooLong"
        case .invalidConfiguration: "invalidConfiguration"
        }
    }
}

extension TransportResponse {
    init(_ body: String) {
        self.init(200, body)
    }

    init(_ status: Int, _ body: String, headers: [String: String] = ["Content-Type": "application/json"]) {
        self.init(status: status, headers: headers, body: Data(body.utf8))
    }

    /// An answer with a token and further members.
    static func token(_ members: String = "") -> TransportResponse {
        TransportResponse(#"{"access_token":"abc","token_type":"Bearer"\#(members.isEmpty ? "" : ",")\#(members)}"#)
    }
}

extension ClientCredentialsLoader {
    static let secret = "s3cr3t+/: ü"

    /// Returns a loader whose server gives one answer.
    init(
        answer: TransportResponse, lifetimeWhenMissing: Duration? = .seconds(300), now: Date = Date(timeIntervalSince1970: 0)
    ) throws {
        try self.init(
            OAuthClient(
                id: "me", authentication: .clientSecretBasic(Self.secret),
                tokenURL: #require(URL(string: "https://as.example/token")), lifetimeWhenMissing: lifetimeWhenMissing,
                transport: ScriptedTransport { answer }, wallClock: { now }))
    }
}

extension RefreshTokenLoader {
    static let secret = "s3cr3t+/: ü"

    /// Returns a loader whose server gives one answer.
    init(answer: TransportResponse, scope: String? = nil, transport: ScriptedTransport? = nil) throws {
        try self.init(
            tokenURL: #require(URL(string: "https://as.example/token")), clientID: "me", clientSecret: Self.secret,
            scope: scope, transport: transport ?? ScriptedTransport { answer })
    }

    /// Loads with a refresh token, and returns the error, which there must be.
    func failure() async throws -> OAuthError {
        try await failure(replacing: AccessToken("old", refreshToken: "r1"))
    }
}

extension TokenLoader {
    /// Loads, and returns the error, which there must be.
    func failure(replacing previous: AccessToken? = nil) async throws -> OAuthError {
        try await #require(throws: OAuthError.self) { try await loadToken(replacing: previous) }
    }
}
