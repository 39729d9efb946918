import AccessTokens
import AccessTokensOAuth
import AccessTokensSharedFiles
import AccessTokensSharing
import DataLoading
import Dispatch
import Foundation
import Synchronization

/// A command-line tool that calls an API as its user.
@main
struct Tool {
    let settings: Settings
    let client: OAuthClient
    let tokens: TokenService

    init(_ settings: Settings) throws {
        self.settings = settings
        client = try OAuthClient(
            id: settings.clientID, tokenURL: settings.tokenURL)
        tokens = TokenService(
            sharedStore: SharedFileTokenStore(path: settings.session),
            loader: try RefreshTokenLoader(client))
    }

    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            let tool = try Tool(Settings())
            let work = Task { await tool.run(arguments) }
            let signals = [SIGINT, SIGTERM].map {
                handle($0, work.cancel)
            }
            let status = await work.value
            // The answer to a refresh has a refresh token that only this
            // process gets, also after Ctrl-C.
            await tool.tokens.drain(within: .seconds(8))
            withExtendedLifetime(signals) {
                exit(work.isCancelled ? 130 : status)
            }
        } catch {
            say(advice(on: error))
            exit(1)
        }
    }

    /// The first signal cancels the work, the next one ends the process.
    static func handle(
        _ number: Int32, _ cancel: @escaping @Sendable () -> Void
    ) -> any DispatchSourceSignal {
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number)
        let isCancelled = Mutex(false)
        source.setEventHandler {
            let isSecond = isCancelled.withLock { flag in
                defer { flag = true }
                return flag
            }
            if isSecond { _exit(130) }
            cancel()
        }
        source.resume()
        return source
    }

    func run(_ arguments: [String]) async -> Int32 {
        do {
            switch arguments {
            case ["login"]: try await logIn(askOnAnotherDevice)
            case ["login", "--browser"]: try await logIn(askInBrowser)
            case ["whoami"]: print(try await userName())
            case ["logout"]: try await logOut()
            default:
                let name = Settings.name
                say("usage: \(name) login [--browser] | whoami | logout")
                return 64
            }
            return 0
        } catch {
            say(advice(on: error))
            return 1
        }
    }

    private func logIn(
        _ ask: () async throws -> TokenResponse
    ) async throws {
        // The user may be another one, so the last session ends. It ends
        // first, since some servers revoke a user's tokens all at once.
        try? await logOut()
        let token: AccessToken
        do {
            token = try await ask().token
        } catch let salvaged as SalvagedGrant {
            token = salvaged.grant
        }
        if let failure = await tokens.replace(with: token).storeFailure {
            throw failure
        }
        say("You are signed in.")
    }

    /// For a terminal whose browser is elsewhere.
    private func askOnAnotherDevice() async throws -> TokenResponse {
        let signIn = try await DeviceSignIn(
            client, deviceAuthorizationURL: settings.deviceURL,
            scope: settings.scope)
        say("Open \(signIn.verificationURI) and enter \(signIn.userCode)")
        return try await signIn.token()
    }

    private func askInBrowser() async throws -> TokenResponse {
        let listener = try BrowserListener()
        let request = try SignInRequest(
            client, authorizationURL: settings.authorizationURL,
            redirectURI: listener.url, scope: settings.scope)
        say("Opening \(request.url)")
        openBrowser(request.url)
        let grant = try await listener.read { url in
            do {
                return try request.grant(from: url)
            } catch let error as OAuthError
                where error.code == .callbackMismatch
            {
                return nil  // any web page can send such a request
            }
        }
        return try await client.token(for: grant)
    }

    /// Sends a request with a token, and after a 401 once more with the
    /// next one.
    private func userName() async throws -> String {
        let loader = DataLoaderFactory(
            tokens: try OriginTokens(tokens, for: [settings.userURL])
        ).makeLoader()
        let answer = try await loader.perform(
            Request(url: settings.userURL))
        return String(decoding: answer.body, as: UTF8.self)
    }

    private func logOut() async throws {
        let change = await tokens.reset()
        for token in change.discarded {
            do {
                try await client.revoke(token, at: settings.revocationURL)
            } catch {
                say("The server wasn't told. \(advice(on: error))")
            }
        }
        if let failure = change.storeFailure { throw failure }
    }
}

/// Writes a line for a person; the standard output is for results.
func say(_ text: String) {
    FileHandle.standardError.write(Data("\(text)\n".utf8))
}
