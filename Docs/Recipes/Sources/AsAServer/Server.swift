import AccessTokens
import AccessTokensHTTP
import AccessTokensKeys
import AccessTokensSharing
import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import ServiceLifecycle
import UnixSignals

/// A server of many tenants that calls an API with each tenant's tokens.
///
///     MyServer table | psql                    # what makes the table
///     MyServer settings.json anna < token      # saves a refresh token
///     MyServer settings.json
@main
struct Server {
    static func main() async {
        LoggingSystem.bootstrap(StreamLogHandler.standardError)
        // MetricsSystem and InstrumentationSystem: yours to bootstrap.
        let logger = Logger(label: "reports")
        do {
            let words = Array(CommandLine.arguments.dropFirst())
            if words == ["table"] {
                return print(PostgreSQLTokenStore.table, ";")
            }
            let settings = try Settings(
                path: words.first ?? "settings.json")
            if words.count > 1 {
                return try await signIn(words[1], settings)
            }
            try await run(settings, logger)
        } catch {
            logger.critical("\(error)")
            exit(1)
        }
    }

    /// Answers until SIGTERM arrives.
    static func run(_ settings: Settings, _ logger: Logger) async throws {
        // Two clients: the API's keeps connections and follows redirects.
        // The one for tokens does neither, so that no refresh token is
        // sent twice or elsewhere.
        let (forTokens, forAPI) = (
            HTTPClient(configuration: .forTokens), HTTPClient()
        )
        let tokens = services(settings, forTokens)
        let logging = log(tokens, to: logger) { "\($0)" }
        let measuring = Task { [events = tokens.events()] in
            await measure(events) { settings.tenants[$0]?.plan ?? "none" }
        }

        // A group ends its services in reverse order. First the server
        // takes no more requests, and the open ones end, which may need a
        // token. Then the last loads and saves end.
        let group = ServiceGroup(
            services: [
                TokenLifecycle(logger: logger) {
                    await tokens.drain(within: $0).isComplete
                },
                Counting { record(tokens.counts) },
                try server(settings, tokens, forAPI, logger),
            ],
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        let result: Result<Void, any Error>
        do {
            result = .success(try await group.run())
        } catch {
            result = .failure(error)
        }

        // Nothing needs these any longer.
        logging.cancel()
        measuring.cancel()
        try await forAPI.shutdown()
        try await forTokens.shutdown()
        try result.get()
    }

    /// Saves the refresh token of the standard input for all instances.
    static func signIn(
        _ name: String, _ settings: Settings
    ) async throws {
        guard settings.tenants[name] != nil, let token = readLine() else {
            throw UnknownTenant()
        }
        let tokens = TokenServices<String>(
            sharedStores: stores(settings),
            // Nothing is loaded here.
            loader: { _ in throw UnknownTenant() })
        let grant = AccessToken("", lifetime: .zero, refreshToken: token)
        let change = await tokens[name].replace(with: grant)
        if let failure = change.storeFailure { throw failure }
    }

    private static func stores(
        _ settings: Settings
    ) -> PostgreSQLTokenStores {
        PostgreSQLTokenStores(
            databases: (1...4).map { _ in
                PostgreSQLConnection(settings.database)
            })
    }

    /// One grant for each tenant, which all instances share.
    static func services(
        _ settings: Settings, _ client: HTTPClient
    ) -> TokenServices<String> {
        let transport = AsyncHTTPClientTransport(client: client)
        // A request may take 8 s, its load 10; 5 s later none is left.
        let sharing = TokenSharing(
            transportLimit: .seconds(5),
            serverGrace: settings.serverGrace.map { .seconds($0) })
        return TokenServices(
            policy: { _ in RefreshPolicy(loadTimeout: .seconds(10)) },
            sharedStores: stores(settings), sharing: sharing
        ) { tenant -> any TokenLoader in
            traced(try settings.loader(of: tenant, over: transport))
        }
    }

    private static func traced(
        _ loader: some TokenLoader
    ) -> any TokenLoader {
        TracedLoader(base: loader)
    }

    private static func server(
        _ settings: Settings, _ tokens: TokenServices<String>,
        _ client: HTTPClient, _ logger: Logger
    ) throws -> some Service {
        guard let origin = Origin(settings.apiURL) else {
            throw CocoaError(.coderInvalidValue)
        }
        let reports = Reports(
            tokens: tokens, client: client, url: settings.apiURL,
            origin: origin)
        let names = Dictionary(
            settings.tenants.map { ("Bearer \($1.key)", $0) }
        ) { first, _ in first }
        let router = reports.router { request in
            let key = request.headers[.authorization] ?? ""
            guard let name = names[key] else {
                throw HTTPError(.unauthorized)
            }
            return name
        }
        return Application(
            router: router,
            configuration: .init(
                address: .hostname("127.0.0.1", port: settings.port)),
            logger: logger)
    }
}

/// Records gauges every ten seconds.
struct Counting: Service {
    let record: @Sendable () -> Void

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                record()
                try await Task.sleep(for: .seconds(10))
            }
        }
    }
}
