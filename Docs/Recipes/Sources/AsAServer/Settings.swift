import AccessTokens
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation

/// The server's settings, from a JSON file that only its user can read.
struct Settings: Decodable {
    struct Tenant: Decodable {
        /// What the tenant's requests carry as a bearer token.
        let key: String
        let plan: String
        let clientID: String
        /// `nil`: a person of the tenant has signed in elsewhere, and the
        /// database has the refresh token.
        let secret: String?
    }

    let port: Int
    let tokenURL: URL
    let apiURL: String
    /// Settings of libpq.
    let database: [String: String]
    let tenants: [String: Tenant]
    /// For how long the server accepts a used refresh token again.
    var serverGrace: Int?

    init(path: String) throws {
        let bytes = try Data(contentsOf: URL(filePath: path))
        self = try JSONDecoder().decode(Self.self, from: bytes)
    }

    /// Client credentials or a refresh token, as the tenant has it.
    func loader(
        of name: String, over transport: any TokenTransport
    ) throws -> any TokenLoader {
        guard let tenant = tenants[name] else { throw UnknownTenant() }
        let client = try OAuthClient(
            id: tenant.clientID,
            authentication: tenant.secret.map { .clientSecretBasic($0) }
                ?? .publicClient,
            tokenURL: tokenURL, transport: transport,
            timeLimit: .seconds(8))
        if tenant.secret == nil { return try RefreshTokenLoader(client) }
        return try ClientCredentialsLoader(client)
    }
}

struct UnknownTenant: TokenLoadFailure {
    var remedy: TokenServiceError.Remedy { .programChange }
}
