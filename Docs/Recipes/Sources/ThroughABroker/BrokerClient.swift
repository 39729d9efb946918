import AccessTokens
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Synchronization

/// Asks the broker for tokens, and starts it if there is none.
final class BrokerClient: TokenLoader {
    let isRepeatable = true  // asking again spends nothing
    private let directory: BrokerDirectory
    private let client: HTTPClient
    private let startLimit: Duration
    private let answerLimit: TimeAmount
    private let start: @Sendable () throws -> Void
    /// The session of the tokens that this client has.
    private let session = Mutex("")

    /// - Parameters:
    ///   - client: Made with the configuration `forBroker`.
    ///   - answerLimit: More than the 35 s that the broker may take for a
    ///     load and its save; with `startLimit`, less than `loadTimeout`
    ///     below.
    ///   - start: Starts a program that runs the broker.
    init(
        in directory: BrokerDirectory, over client: HTTPClient,
        startLimit: Duration = .seconds(20),
        answerLimit: TimeAmount = .seconds(38),
        start: @escaping @Sendable () throws -> Void
    ) {
        self.directory = directory
        self.client = client
        self.startLimit = startLimit
        self.answerLimit = answerLimit
        self.start = start
    }

    @concurrent func loadToken(
        replacing previous: AccessToken?
    ) async throws -> AccessToken {
        let (answer, body) = try await ask("token", replacing: previous)
        let stored = try StoredToken(
            serialized: Data(body.readableBytesView))
        session.withLock { $0 = answer.headers["ETag"].first ?? "" }
        return stored.token
    }

    /// Ends the session for all clients, and the broker.
    func signOut() async throws {
        _ = try await ask("sign-out", replacing: nil)
    }

    private func ask(
        _ path: String, replacing previous: AccessToken?
    ) async throws -> (HTTPClientResponse, ByteBuffer) {
        let url = URL(
            httpURLWithSocketPath: directory.socket, uri: "/1/\(path)")
        var request = HTTPClientRequest(url: url?.absoluteString ?? "")
        request.method = .POST
        if let previous {
            request.headers.add(
                name: "If-Match", value: session.withLock(\.self))
            request.body = .bytes(ByteBuffer(string: previous.value))
        }
        let (answer, body) = try await send(request)
        switch answer.status {
        case .ok, .noContent: return (answer, body)
        case .serviceUnavailable:
            throw try JSONDecoder().decode(
                BrokerAnswer.self, from: Data(body.readableBytesView))
        case .preconditionFailed:
            throw BrokerError("another user has signed in", .signIn)
        default:
            throw BrokerError(
                "the broker is of another version: wait for its end")
        }
    }

    /// Sends the request, again if a broker had to be started first, or
    /// has ended before it answered.
    private func send(
        _ request: HTTPClientRequest
    ) async throws -> (HTTPClientResponse, ByteBuffer) {
        let end = ContinuousClock.now + startLimit
        var attempts = 0
        while true {
            try directory.check()
            do {
                let answer = try await client.execute(
                    request, timeout: answerLimit)
                return (
                    answer, try await answer.body.collect(upTo: 2 << 20)
                )
            } catch {
                try Task.checkCancellation()
                // The last broker may still wait for what it has begun.
                if attempts.isMultiple(of: 20) { try start() }
                guard .now < end else {
                    throw BrokerError(
                        "no broker answers: \(error)", .retry)
                }
            }
            attempts += 1
            try await Task.sleep(for: .milliseconds(25))
        }
    }

    /// Starts a program that outlives this one.
    static func launch(_ program: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }
}

extension TokenService {
    /// A service that leaves refreshes ahead to the broker, which takes a
    /// token that is replaced early for one that an API has refused.
    static func asking(_ broker: BrokerClient) -> TokenService {
        TokenService(
            policy: RefreshPolicy(
                loadTimeout: .seconds(60), maximumRefreshWindow: .zero),
            loader: broker)
    }
}

extension HTTPClient.Configuration {
    /// A connection for each request: the broker may have ended.
    static var forBroker: Self {
        var configuration = Self(
            redirectConfiguration: .disallow, decompression: .disabled)
        configuration.maximumUsesPerConnection = 1
        configuration.connectionPool.retryConnectionEstablishment = false
        return configuration
    }
}
