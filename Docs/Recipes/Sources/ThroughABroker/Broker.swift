import AccessTokens
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization
import UnixSignals

/// The one process that refreshes a session's tokens.
struct Broker {
    let directory: BrokerDirectory
    let tokens: TokenService
    let store: any TokenStore  // the one that `tokens` has
    var idleLimit: Duration = .seconds(300)
    var endLimit: Duration = .seconds(40)
    var revoke: @Sendable (AccessToken) async -> Void = { _ in }
    var logger = Logger(label: "broker")

    /// Answers until SIGTERM, a sign-out, or `idleLimit` without a
    /// request.
    ///
    /// Before it returns, it waits for the loads and saves that the
    /// session depends on. It returns at once if another broker runs.
    func run() async throws {
        guard let lock = try await directory.lock() else { return }
        defer { withExtendedLifetime(lock) {} }
        // From the terminal of the client that began it.
        signal(SIGHUP, SIG_IGN)
        let name = try lock.readToEnd() ?? Data()
        let idle = IdleLimit(idleLimit)
        let server = Application(
            router: router(String(decoding: name, as: UTF8.self), idle),
            configuration: .init(
                address: .unixDomainSocket(path: directory.socket)),
            logger: logger)
        var group = ServiceGroupConfiguration(
            services: [
                .init(
                    service: idle,
                    successTerminationBehavior: .gracefullyShutdownGroup),
                .init(service: server),
            ],
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        group.maximumGracefulShutdownDuration = endLimit
        let result: Result<Void, any Error>
        do {
            result = .success(
                try await ServiceGroup(configuration: group).run())
        } catch {
            result = .failure(error)
        }
        await tokens.drain(within: endLimit)
        try result.get()
    }

    private typealias Answer = EditedResponse<ByteBuffer>

    private func router(
        _ session: String, _ idle: IdleLimit
    ) -> Router<BasicRequestContext> {
        let router = Router()
        // A broker that sends something else gets another number.
        router.post("1/token") { request, _ in
            try await idle.whileAnswering {
                guard request.headers[.ifMatch] ?? session == session
                else {
                    throw HTTPError(.preconditionFailed)
                }
                let old = try await request.body.collect(upTo: 1 << 20)
                return try await answer(
                    replacing: String(buffer: old), in: session)
            }
        }
        router.post("1/sign-out") { _, _ in
            defer { kill(getpid(), SIGTERM) }
            return try await idle.whileAnswering { try await signOut() }
        }
        return router
    }

    private func answer(
        replacing old: String, in session: String
    ) async throws -> Answer {
        if let stored = try? await store.load(),
            stored.token.value == old,
            stored.isRefusedIfReplaced
        {
            await tokens.invalidate(stored.token)
        }
        do {
            let token = try await tokens.retrieveToken()
            let stored = try? await store.load()
            let rest =
                stored?.token.value == token.value ? stored?.rest : nil
            // If the store can't tell, at least a hundredth is left.
            let lifetime = token.lifetime.map {
                rest ?? min($0 / 100, .seconds(6))
            }
            let lent = AccessToken(
                token.value, tokenType: token.tokenType,
                lifetime: lifetime,
                scope: token.scope)
            let bytes = try StoredToken(lent, received: .now).serialized()
            return Answer(
                status: .ok, headers: [.eTag: session],
                response: ByteBuffer(bytes: bytes))
        } catch let error as TokenServiceError {
            return try failure(error)
        }
    }

    private func signOut() async throws -> Answer {
        let change = await tokens.reset()
        for token in change.discarded { await revoke(token) }
        return try change.storeFailure.map(failure)
            ?? Answer(status: .noContent, response: ByteBuffer())
    }

    private func failure(_ error: TokenServiceError) throws -> Answer {
        let bytes = try JSONEncoder().encode(BrokerAnswer(error))
        return Answer(
            status: .serviceUnavailable,
            response: ByteBuffer(bytes: bytes))
    }
}

extension StoredToken {
    /// The rest of the lifetime; `nil` if it has no end.
    fileprivate var rest: Duration? {
        let age = max(0, Date.now.timeIntervalSince(received))
        return token.lifetime.map { $0 - .seconds(age) }
    }

    /// Whether a client that replaces it must have seen it refused: it
    /// has more left than the leeway, and 2 s for a client that is slow
    /// to ask.
    fileprivate var isRefusedIfReplaced: Bool {
        guard let lifetime = token.lifetime, let rest else { return true }
        return rest > min(lifetime / 10, .seconds(60)) + .seconds(2)
    }
}

/// Ends the broker after a time without requests.
private final class IdleLimit: Service {
    private let limit: Duration
    private let state: Mutex<State>

    private struct State {
        var answering: Int
        var end: ContinuousClock.Instant
    }

    init(_ limit: Duration) {
        self.limit = limit
        state = Mutex(State(answering: 0, end: .now + limit))
    }

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while let rest = self.rest { try await Task.sleep(for: rest) }
        }
    }

    func whileAnswering<Value>(
        _ body: () async throws -> Value
    ) async rethrows -> Value {
        state.withLock { $0.answering += 1 }
        defer {
            state.withLock {
                $0.answering -= 1
                $0.end = .now + limit
            }
        }
        return try await body()
    }

    private var rest: Duration? {
        let state = state.withLock(\.self)
        if state.answering > 0 { return limit }
        let rest = ContinuousClock.now.duration(to: state.end)
        return rest > .zero ? rest : nil
    }
}
