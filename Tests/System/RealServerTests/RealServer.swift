import AccessTokensHTTP
import AccessTokens
import AccessTokensOAuth
import Foundation
import Testing

/// The authorization server that `start-glewlwyd` started, with its own information about its tokens.
struct RealServer: Sendable {
    /// A client of the server, with a secret.
    struct Client: Sendable {
        var id: String
        var secret: String
    }

    /// A user who signs in.
    struct User: Sendable {
        var name: String
        var password: String
    }

    let client: Client
    /// A client whose secret changes when it is encoded for a form.
    let oddClient: Client
    /// A client that acts for users, first with their passwords and then with one-time refresh tokens.
    let app: Client
    let user: User
    /// Further users.
    let accounts: [User]
    /// How long the server's access tokens live.
    let lifetime: Duration
    let process: ServerProcess
    let scope: String
    let tokenURL: URL
    let introspectionURL: URL
    let revocationURL: URL
    private let database: String

    /// The server that the environment names; `nil`: none.
    static let inEnvironment = RealServer(ProcessInfo.processInfo.environment)

    private init?(_ environment: [String: String]) {
        guard let id = environment["TOKEN_SERVER_CLIENT_ID"], let secret = environment["TOKEN_SERVER_CLIENT_SECRET"],
            let oddID = environment["TOKEN_SERVER_ODD_CLIENT_ID"],
            let oddSecret = environment["TOKEN_SERVER_ODD_CLIENT_SECRET"],
            let appID = environment["TOKEN_SERVER_APP_CLIENT_ID"],
            let appSecret = environment["TOKEN_SERVER_APP_CLIENT_SECRET"],
            let user = environment["TOKEN_SERVER_USER"], let password = environment["TOKEN_SERVER_PASSWORD"],
            let accounts = environment["TOKEN_SERVER_ACCOUNTS"].flatMap(Int.init), accounts >= 0,
            let lifetime = environment["TOKEN_SERVER_LIFETIME"].flatMap(Int.init),
            let directory = environment["TOKEN_SERVER_DIR"], let script = environment["TOKEN_SERVER_SCRIPT"],
            let scope = environment["TOKEN_SERVER_SCOPE"], let database = environment["TOKEN_SERVER_DATABASE"],
            let tokenURL = environment["TOKEN_SERVER_URL"].flatMap(URL.init(string:)),
            let introspectionURL = environment["TOKEN_SERVER_INTROSPECT_URL"].flatMap(URL.init(string:)),
            let revocationURL = environment["TOKEN_SERVER_REVOKE_URL"].flatMap(URL.init(string:))
        else { return nil }
        client = Client(id: id, secret: secret)
        oddClient = Client(id: oddID, secret: oddSecret)
        app = Client(id: appID, secret: appSecret)
        self.user = User(name: user, password: password)
        self.accounts = (0..<accounts).map { User(name: "account-\($0 + 1)", password: "account-\($0 + 1)-password") }
        self.lifetime = .seconds(lifetime)
        process = ServerProcess(script: script, directory: directory)
        self.scope = scope
        self.database = database
        self.tokenURL = tokenURL
        self.introspectionURL = introspectionURL
        self.revocationURL = revocationURL
    }

    /// A loader for a client of this server, which requires a scope in the request.
    func loader(
        for client: Client, authentication: (String) -> ClientAuthentication = { .clientSecretBasic($0) },
        over transport: any TokenTransport = URLSessionTransport()
    ) throws -> ClientCredentialsLoader {
        try ClientCredentialsLoader(
            OAuthClient(
                id: client.id, authentication: authentication(client.secret), tokenURL: tokenURL, transport: transport),
            scope: scope)
    }

    /// How many access tokens the server has ever issued, according to its database.
    ///
    /// To any client: this server doesn't record the client if it posts its secret.
    func tokensIssued() async throws -> Int {
        try await count("")
    }

    /// How many of them it has issued for refresh tokens.
    func refreshesIssued() async throws -> Int {
        try await count(" WHERE gpoa_authorization_type = 6")
    }

    private func count(_ condition: String) async throws -> Int {
        let query = "SELECT COUNT(*) FROM gpo_access_token" + condition
        let answer = try await ServerProcess.run("sqlite3", "-readonly", database, query)
        return try #require(Int(answer.trimmingCharacters(in: .whitespacesAndNewlines)))
    }

    /// Whether the server currently considers the token valid (RFC 7662).
    func isActive(_ token: AccessToken) async throws -> Bool {
        try await isActive(token.value, for: client)
    }

    /// Makes the server revoke an access token of a client, ``client`` by default (RFC 7009).
    func revoke(_ token: AccessToken, by client: Client? = nil) async throws {
        _ = try await post([URLQueryItem(name: "token", value: token.value)], to: revocationURL, by: client ?? self.client)
    }

    /// Whether the server currently considers a client's token, of either kind, valid.
    func isActive(_ token: String, for client: Client) async throws -> Bool {
        try await introspect(token, for: client).active
    }

    /// The server's description of a client's token.
    func introspect(_ token: String, for client: Client) async throws -> Introspection {
        let answer = try await post([URLQueryItem(name: "token", value: token)], to: introspectionURL, by: client)
        return try JSONDecoder().decode(Introspection.self, from: answer)
    }

    struct Introspection: Decodable {
        let active: Bool
        /// The name of the user who signed in; `nil`: the client got the token in its own name.
        let username: String?
    }

    /// Sends a form in the name of a client; the values need no encoding, since they only have letters, digits and `-._`.
    func post(_ form: [URLQueryItem], to url: URL, by client: Client) async throws -> Data {
        let credentials = Data("\(client.id):\(client.secret)".utf8).base64EncodedString()
        let headers = ["Authorization": "Basic \(credentials)", "Content-Type": "application/x-www-form-urlencoded"]
        let body = Data(form.map { "\($0.name)=\($0.value ?? "")" }.joined(separator: "&").utf8)
        let answer = try await URLSessionTransport().send(TransportRequest(url: url, headers: headers, body: body))
        try #require(answer.status == 200)
        return answer.body
    }
}
