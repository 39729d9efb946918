import AccessTokens
import AccessTokensFiles
import AsyncHTTPClient
import Foundation
import Logging

@testable import ThroughABroker

/// The processes of the tests: what a program that has a broker does.
@main
struct Worker {
    static func main() async {
        let arguments = CommandLine.arguments
        let settings = Settings(text: arguments.dropFirst(2).first ?? "")
        do {
            switch arguments.dropFirst().first {
            case "broker": try await broker(settings)
            case "agent": try await agent(settings)
            case "reports": try await reports(settings)
            default: exit(64)
            }
        } catch {
            try? settings.note("ended \(error)")
            exit(1)
        }
    }

    static func broker(_ settings: Settings) async throws {
        let directory = try BrokerDirectory(path: settings.directory)
        let store = FileTokenStore(path: settings.directory + "/token")
        try await Broker(
            directory: directory, tokens: TokenService(store: store, loader: Exchange(settings: settings)), store: store,
            idleLimit: .milliseconds(settings.idle), endLimit: .milliseconds(settings.end),
            revoke: { token in try? settings.note("revoked \(token.refreshToken ?? "")") },
            logger: Logger(label: "broker") { _ in SwiftLogNoOpLogHandler() }
        ).run()
    }

    /// Asks for tokens until it is killed, or the session has ended.
    static func agent(_ settings: Settings) async throws {
        let directory = try BrokerDirectory(path: settings.directory)
        let client = HTTPClient(configuration: .forBroker)
        let tokens = TokenService.asking(
            BrokerClient(in: directory, over: client) { try BrokerClient.launch(settings.program, ["broker", settings.text]) })
        try settings.note("agent \(getpid())")
        while true {
            do {
                _ = try await tokens.retrieveToken()
            } catch let error as TokenServiceError where error.remedy == .signIn {
                try settings.note("lost \(getpid())")
                exit(0)
            } catch {
                try settings.note("failed \(error)")
                await tokens.retryNow()
            }
            try await Task.sleep(for: .milliseconds(.random(in: 1...10)))
        }
    }

    /// An exchange whose answer takes a while to arrive.
    struct Exchange: TokenLoader {
        let settings: Settings

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            let token = try await StrictServer(path: settings.ledger).loadToken(replacing: previous)
            try await Task.sleep(for: .milliseconds(settings.delay))
            return AccessToken(token.value, lifetime: .milliseconds(settings.lifetime), refreshToken: token.refreshToken)
        }
    }
}
