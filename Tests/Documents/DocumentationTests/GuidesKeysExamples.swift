import AccessTokens
import AccessTokensFiles
import AccessTokensKeys
import AccessTokensOAuth
import AccessTokensSharedFiles
import AccessTokensSharing
import AccessTokensTesting
import DataLoading
import Foundation
import Insides
import TestBudgets
import Testing

// The Swift blocks of `ManyKeys`, unchanged, and run.

private func fetchToken(for tenant: String) async throws -> AccessToken { AccessToken(tenant) }

private actor Tenants {
    private var services: [String: TokenService] = [:]

    func service(for tenant: String) -> TokenService {
        let service =
            services[tenant]
            ?? TokenService { _ in try await fetchToken(for: tenant) }
        services[tenant] = service  // and nothing ever takes it out
        return service
    }
}

struct Tenant {
    let tokenURL: URL
    let clientID: String
    var secret: String?  // nil: the tenant signs in
}

struct UnknownTenant: Error {
    let name: String
}

func tokens(of tenants: [String: Tenant]) -> TokenServices<String> {
    TokenServices { name -> any TokenLoader in
        guard let tenant = tenants[name] else {
            throw UnknownTenant(name: name)
        }
        let (url, id) = (tenant.tokenURL, tenant.clientID)
        guard let secret = tenant.secret else {
            return try RefreshTokenLoader(tokenURL: url, clientID: id)
        }
        return try ClientCredentialsLoader(
            tokenURL: url, clientID: id, clientSecret: secret)
    }
}

private struct Scope: Hashable {
    var account: String
    var name = ""
}

@Suite(.inRealTime) struct `The guide to many keys` {
    private let server = SimulatedAuthorizationServer(
        clock: ManualClock(), keepsOneTokenValid: false, rotatesRefreshTokens: true)

    @Test func `makes a service for each tenant`() async throws {
        let tenants = Tenants()
        #expect(await tenants.service(for: "a") === tenants.service(for: "a"))

        let services = TokenServices<String>(keepingIdle: 500) { tenant, _ in
            try await fetchToken(for: tenant)
        }
        let token = try await services["tenant 7"].retrieveToken()
        #expect(token.value == "tenant 7")
    }

    @Test func `makes a client for each tenant, and a load throws the error of its initializer`() async throws {
        let plain = try #require(URL(string: "http://login.example"))
        let services = tokens(of: ["a": Tenant(tokenURL: plain, clientID: "a", secret: "s")])
        let error = await #expect(throws: TokenServiceError.self) { try await services["a"].retrieveToken() }
        #expect(error?.underlying is OAuthError)
        let signIns = tokens(of: ["a": Tenant(tokenURL: try #require(URL(string: "https://login.example")), clientID: "a")])
        let signedOut = await #expect(throws: TokenServiceError.self) { try await signIns["a"].retrieveToken() }
        #expect(signedOut?.remedy == .signIn)
        let unknown = await #expect(throws: TokenServiceError.self) { try await services["b"].retrieveToken() }
        #expect(unknown?.underlying is UnknownTenant)
    }

    @Test func `finds a stored token, and signs an account out`() async throws {
        let stores = storesInMemory()
        let services = TokenServices<String>(
            keepingIdle: 0, stores: stores
        ) { _, previous in
            try await server.loader.loadToken(replacing: previous)
        }
        await services["Anna"].replace(with: server.signIn())
        #expect(services.counts.idle == 0)  // nothing is kept in memory
        // found in the store
        #expect(try await services["Anna"].retrieveToken().value == "access-1")

        let signOut = await services.reset { $0 == "Anna" }
        let discarded = signOut.changes["Anna"]?.discarded ?? []
        #expect(discarded.first?.refreshToken == "refresh-1")  // yours to revoke
        #expect(try await stores.storedKeys().isEmpty)
    }

    // The disk isn't used, since it may be slow while other tests run.
    @Test func `keeps each tenant's token in files, and each account's record`() {
        let directory = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID())").path
        do {
            let files = FileTokenStores<String>(directory: directory)
            let tenants = TokenServices(keepingIdle: 500, stores: files) {
                tenant, _ in
                try await fetchToken(for: tenant)
            }
            #expect(tenants["tenant 7"].cachedToken == nil)
        }
        let records = SharedFileTokenStores<String>(directory: directory)
        let services = TokenServices(
            sharedStores: records, loader: { _ in server.loader })
        #expect(services["Anna"].cachedToken == nil)
    }

    @Test func `binds one account's tokens, and a key's for each origin, to requests`() throws {
        let services = TokenServices<String> { tenant, _ in try await fetchToken(for: tenant) }
        let urls = try ["api", "mail", "files"].map { try #require(URL(string: "https://\($0).example.com")) }
        let (apiURL, mailURL, filesURL) = (urls[0], urls[1], urls[2])
        let factory = DataLoaderFactory(
            tokens: try OriginTokens(services["Anna"], for: [apiURL]))
        #expect("\(factory)".contains("api.example.com"))

        let tokens = try OriginTokens(
            keys: [mailURL: "mail", filesURL: "files"]
        ) { services[$0] }
        let loader = DataLoaderFactory(tokens: tokens).makeLoader()
        #expect("\(tokens)".contains("files.example.com") && "\(loader)".contains("DataLoader"))
    }

    @Test func `makes scopes with one refresh token load one after the other`() async throws {
        let services = TokenServices<Scope>(
            grant: { Scope(account: $0.account) }
        ) { _, previous in
            try await server.loader.loadToken(replacing: previous)
        }
        await services[Scope(account: "Ben", name: "mail")]
            .replace(with: server.signIn())
        async let mail = services[Scope(account: "Ben", name: "calendar")]
            .retrieveToken()
        async let files = services[Scope(account: "Ben", name: "files")]
            .retrieveToken()
        _ = try await (mail, files)
        #expect(server.reuseDetected == 0)  // one after the other
    }
}
