import AccessTokensHTTP
import AccessTokensKeys
import AccessTokensOAuth
import AccessTokensSharedFiles
import AccessTokensSharing
import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird

@testable import BehindHummingbird
@testable import OverAsyncHTTPClient

extension Worker {
    /// An instance of the server with many tenants.
    static func reports(_ settings: Settings) async throws {
        let client = HTTPClient(configuration: .forTokens)
        guard let url = URL(string: settings.server) else { exit(64) }
        let api = url.deletingLastPathComponent().appending(path: "api").absoluteString
        guard let origin = BehindHummingbird.Origin(api) else { exit(64) }
        let services = TokenServices<String>(sharedStores: SharedFileTokenStores(directory: settings.directory)) { _, previous in
            try await RefreshTokenLoader(
                tokenURL: url, clientID: "reports", clientSecret: "secret", transport: AsyncHTTPClientTransport(client: client)
            ).loadToken(replacing: previous)
        }
        let reports = Reports(tokens: services, client: client, url: api, origin: origin)
        try await reports.run(at: .hostname("127.0.0.1", port: settings.port)) { request in
            guard let tenant = request.headers[.authorization] else { throw HTTPError(.unauthorized) }
            return tenant
        }
        try await client.shutdown()
    }
}
