import AccessTokens
import AccessTokensDispatch
package import Interleavings

/// One way to write a token service: its real source code in simulated surroundings.
package struct Design: Sendable {
    /// A service created for one run, which lives as long as this value.
    struct Service: Sendable {
        /// Calls the service, and returns when the call does, which may be long before the handler is called.
        let ask: @Sendable (_ handler: @escaping Handler) async -> Void
        /// The call of a program that has no task and blocks its thread until it is answered; `nil`: it has to start a task.
        let call: (@Sendable (_ handler: @escaping Handler) -> Void)?
        let signOut: @Sendable () async -> Void

        /// A service whose callers are answered through a completion handler.
        init(
            call: @escaping @Sendable (_ handler: @escaping Handler) -> Void, signOut: @escaping @Sendable () async -> Void
        ) {
            self.init(ask: { call($0) }, call: call, signOut: signOut)
        }

        /// A service whose callers wait in a task.
        init(
            ask: @escaping @Sendable (_ handler: @escaping Handler) async -> Void,
            call: (@Sendable (_ handler: @escaping Handler) -> Void)? = nil, signOut: @escaping @Sendable () async -> Void
        ) {
            (self.ask, self.call, self.signOut) = (ask, call, signOut)
        }
    }

    /// Called with the result of a call.
    typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

    /// Its name, in any table.
    package let name: String
    /// Whether callers may use it from several threads; otherwise the behaviour is undefined.
    package let isThreadSafe: Bool
    /// The reason for its numbers; tests compare the sentence with the numbers.
    package let reason: String
    let make: @Sendable (_ surroundings: any Surroundings, _ network: Network) -> Service

    init(
        _ name: String, isThreadSafe: Bool = true, reason: String,
        make: @escaping @Sendable (_ surroundings: any Surroundings, _ network: Network) -> Service
    ) {
        self.name = name
        self.isThreadSafe = isThreadSafe
        self.reason = reason
        self.make = make
    }

    /// Where it may be interrupted: a design that isn't thread-safe, at each access to shared state.
    package var granularity: Granularity { isThreadSafe ? .jobs : .accesses }

    /// All designs, from the articles' first to ours.
    package static let all = [unpredictable, enqueueing, threadSafe, reentrant, callbackShim, tokenService]
}

extension Design {
    /// The articles' first stage.
    package static let unpredictable = Design(
        "stage 1", isThreadSafe: false,
        reason: "Each caller without a token starts a load, so each new token revokes the one before it, which a caller is using."
    ) { surroundings, network in
        let service = UncheckedBox(UnpredictableTokenService(loader: network, clock: surroundings.clock))
        return Service(call: { service.object.retrieveToken(then: $0) }, signOut: { service.object.signOut() })
    }

    /// The articles' second stage.
    package static let enqueueing = Design(
        "stage 2", isThreadSafe: false,
        reason: "One load serves all, but they wait in an object that may be released, for a loader that may never answer."
    ) { surroundings, network in
        let service = UncheckedBox(EnqueueingTokenService(loader: network, clock: surroundings.clock))
        return Service(call: { service.object.retrieveToken(then: $0) }, signOut: { service.object.signOut() })
    }

    /// The articles' third stage, its queue simulated.
    package static let threadSafe = Design(
        "stage 3",
        reason: "Stage 2 behind a queue: safe on all threads, with the same lost answers, undone sign-out and waiting."
    ) { surroundings, network in
        let service = ThreadSafeTokenService(
            loader: network, clock: surroundings.clock, enqueue: surroundings.serialQueue("queue"))
        return Service(call: { service.retrieveToken(then: $0) }, signOut: { service.signOut() })
    }

    /// The naive actor.
    package static let reentrant = Design(
        "naive actor",
        reason: "While one caller awaits its load the actor lets the next one in, which finds no token: stage 1 again."
    ) { surroundings, network in
        let service = ReentrantTokenService(loader: network.tokenLoader, clock: surroundings.clock)
        return Service(
            ask: { handler in
                do { handler(.success(try await service.retrieveToken())) } catch { handler(.failure(error)) }
            },
            signOut: { await service.signOut() })
    }

    /// The articles' API over `TokenService`, its queue simulated.
    package static let callbackShim = Design(
        "AccessTokenService",
        reason: "The articles' API over TokenService: handlers wait in one line, in order, and every load has a limit."
    ) { surroundings, network in
        let enqueue = surroundings.serialQueue("queue")
        let service = AccessTokenService(service: tokenService(surroundings, network)) { enqueue($0) }
        return Service(call: { service.retrieveToken(then: $0) }, signOut: { service.reset() })
    }

    /// The service of this package.
    package static let tokenService = Design(
        "TokenService",
        reason: "One load, one answer each; sign-out is a fence; the next token is loaded before this one expires."
    ) { surroundings, network in
        let service = tokenService(surroundings, network)
        return Service(
            ask: { handler in
                do { handler(.success(try await service.retrieveToken())) } catch { handler(.failure(error)) }
            },
            call: { handler in
                let shim = AccessTokenService(service: service, enqueue: surroundings.serialQueue("queue"))
                shim.retrieveToken(then: handler)
            },
            signOut: { _ = await service.reset() })
    }

    private static func tokenService(_ surroundings: any Surroundings, _ network: Network) -> TokenService {
        TokenService(environment: surroundings.environment, loader: network.tokenLoader)
    }
}
