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
    enum Line: Codable, Equatable {
        /// Still running; a longer silence is a pause.
        case alive
        /// A caller got this token, so it is saved.
        case token(Int)
        /// An exchange brought no answer.
        case answerLost
        /// Callers get an error.
        case failed(String)

        static let heartbeat = Duration.milliseconds(250)

        init?(_ text: Substring) {
            guard let line = try? JSONDecoder().decode(Line.self, from: Data(text.utf8)) else { return nil }
            self = line
        }

        var text: String { (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "" }

        func tell() { Console.print(text) }
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
        let loader = try RefreshTokenLoader(OAuthClient(id: "race-lab", tokenURL: url, timeLimit: .milliseconds(1_500)))
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
                if token != last, let number = FleetGrant.number(ofAccess: token) { Line.token(number).tell() }
                last = token
            } catch let error as TokenServiceError where error.remedy == .signIn {
                await waitForSignIn()
            } catch {
                let reason = "\(error)".split(whereSeparator: \.isNewline).joined(separator: " ")
                if reason != last { Line.failed(reason).tell() }
                last = reason
            }
            try? await Task.sleep(for: .milliseconds(.random(in: 20...60)))
        }
    }

    /// The session has ended: after a while, or once the record has changed, there may be a new one.
    private func waitForSignIn() async {
        let revision = try? await store.load()?.revision
        _ = try? await store.changedRecord(from: revision, atMost: .seconds(1))
        await tokens.retryNow()
    }

    /// Tells that the process is running, from a thread that waits for nothing else, and ends it with its parent.
    private static func beat() {
        let parent = getppid()
        Thread.detachNewThread {
            while getppid() == parent {
                Line.alive.tell()
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
                if (error as? any TokenLoadFailure)?.remedy != .signIn { Line.answerLost.tell() }
                throw error
            }
        }
    }
}
