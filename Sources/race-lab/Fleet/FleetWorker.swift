import AccessTokens
import AccessTokensOAuth
import AccessTokensSharedFiles
import AccessTokensSharing
import Foundation

/// A process of the fleet: it asks its service for tokens, tells what it gets in lines, and never ends by itself while its parent lives.
struct FleetWorker {
    /// The first argument of such a process; no option for people.
    static let flag = "--process-of"

    /// What a process tells its parent, a line each.
    enum Line: Equatable {
        /// Still running; a longer silence is a pause.
        case alive
        /// A caller got this token, so it is saved.
        case token(Int)
        /// An exchange brought no answer.
        case answerLost
        /// Callers get an error.
        case failed(String)

        static let heartbeat = Duration.milliseconds(250)

        var text: String {
            switch self {
            case .alive: "alive"
            case .token(let number): "token \(number)"
            case .answerLost: "lost"
            case .failed(let reason): "failed \(reason)"
            }
        }

        init?(_ text: Substring) {
            let parts = text.split(separator: " ", maxSplits: 1)
            switch (parts.first, parts.dropFirst().first) {
            case ("alive", nil): self = .alive
            case ("lost", nil): self = .answerLost
            case ("token", let number?):
                guard let number = Int(number) else { return nil }
                self = .token(number)
            case ("failed", let reason?): self = .failed(String(reason))
            default: return nil
            }
        }
    }

    private let store: any SharedTokenStore
    private let tokens: TokenService

    /// - Parameter arguments: The flag, the server's URL, and the path of the file with the grant.
    init(_ arguments: [String]) throws {
        guard arguments.count == 3, let server = URL(string: arguments[1]) else {
            throw UsageError("\(Self.flag) is race-lab's own")
        }
        store = SharedFileTokenStore(path: arguments[2])
        let url = server.appending(path: "\(ProcessInfo.processInfo.processIdentifier)")
        let loader = try RefreshTokenLoader(
            tokenURL: url, clientID: "race-lab", transport: URLSessionTransport(timeLimit: .milliseconds(1_500)))
        tokens = TokenService(
            policy: FleetGrant.policy, sharedStore: store, sharing: FleetGrant.sharing, loader: Watched(loader: loader))
    }

    /// Asks again and again.
    func run() async -> Never {
        Self.beat()
        var last: String?
        while true {
            do {
                let token = try await tokens.retrieveToken().value
                if token != last, let number = FleetGrant.number(ofAccess: token) { Console.print(Line.token(number).text) }
                last = token
            } catch let error as TokenServiceError where error.remedy == .signIn {
                await waitForSignIn()
            } catch {
                let reason = "\(error)".split(whereSeparator: \.isNewline).joined(separator: " ")
                if reason != last { Console.print(Line.failed(reason).text) }
                last = reason
            }
            try? await Task.sleep(for: .milliseconds(.random(in: 20...60)))
        }
    }

    /// The session has ended: after a while, or once the record has changed, there may be a new one.
    private func waitForSignIn() async {
        let revision = try? await store.load()?.revision
        try? await store.waitForChange(from: revision, atMost: .seconds(1))
        await tokens.retryNow()
    }

    /// Tells that the process is running, from a thread that waits for nothing else, and ends it with its parent.
    private static func beat() {
        let parent = getppid()
        Thread.detachNewThread {
            while getppid() == parent {
                Console.print(Line.alive.text)
                Thread.sleep(forTimeInterval: Line.heartbeat / .seconds(1))
            }
            exit(0)
        }
    }

    /// Tells when an exchange brought no answer.
    private struct Watched: TokenLoader {
        let loader: RefreshTokenLoader

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            do {
                return try await loader.loadToken(replacing: previous)
            } catch {
                if (error as? any TokenLoadFailure)?.remedy != .signIn { Console.print(Line.answerLost.text) }
                throw error
            }
        }
    }
}
