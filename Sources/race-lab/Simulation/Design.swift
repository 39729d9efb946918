import AccessTokens
import AccessTokensDispatch
import RaceGallery
import TestStage

/// One way to write a token service, and why its row of the table looks as it does.
///
/// The sentences are fixed, the numbers are measured: a test holds the ones to the others.
struct Design: Sendable {
    /// A service made for one scenario; it lives as long as this value.
    struct Service {
        let ask: (_ handler: @escaping @Sendable (Result<AccessToken, any Error>) -> Void) -> Void
        let signOut: () -> Void
    }

    /// The same design under the explorer.
    let contender: Contender
    /// Whether callers may use it from several threads; what the others do there is undefined.
    var isThreadSafe = true
    let reason: String
    let make: @Sendable (World, any AccessTokenLoader) -> Service

    var name: String { contender.name }

    /// The name, marked where the design is for one thread only.
    var title: String { isThreadSafe ? name : name + "*" }

    /// The title in short lines, for the head of a column.
    var heading: [String] { title.replacing("Service", with: " Service").split(separator: " ").map(String.init) }

    static let all = [unpredictable, enqueueing, threadSafe, reentrant, callbackShim, tokenService]

    static let unpredictable = Design(
        contender: .unpredictable,
        isThreadSafe: false,
        reason: "Whoever finds no token starts a load, so each new token revokes the one before it, in its caller's hands."
    ) { world, loader in
        let service = UnpredictableTokenService(loader: loader, clock: world.clock)
        return Service(ask: service.retrieveToken, signOut: service.signOut)
    }

    static let enqueueing = Design(
        contender: .enqueueing,
        isThreadSafe: false,
        reason: "One load serves all, but they wait in an object that others may release, for a loader that must answer."
    ) { world, loader in
        let service = EnqueueingTokenService(loader: loader, clock: world.clock)
        return Service(ask: service.retrieveToken, signOut: service.signOut)
    }

    static let threadSafe = Design(
        contender: .threadSafe,
        reason: "Stage 2 behind a queue: safe on all threads, with the same lost answers, undone sign-out and waiting."
    ) { world, loader in
        let service = ThreadSafeTokenService(loader: loader, queue: world.queue, clock: world.clock)
        return Service(ask: service.retrieveToken, signOut: service.signOut)
    }

    static let reentrant = Design(
        contender: .reentrant,
        reason: "While one caller awaits its load the actor lets the next one in, which finds no token: stage 1 again."
    ) { world, loader in
        let service = ReentrantTokenService(loader: CallbackTokenLoader(loader), clock: world.clock)
        return Service(
            ask: { world.ask(service.retrieveToken, then: $0) },
            signOut: { world.perform { await service.signOut() } })
    }

    static let callbackShim = Design(
        contender: .callbackShim,
        reason: "The articles' API over TokenService: handlers wait in one line, in order, and every load has a limit."
    ) { world, loader in
        let service = AccessTokenService(service: world.tokenService(loader), queue: world.queue)
        return Service(ask: service.retrieveToken, signOut: { service.reset() })
    }

    static let tokenService = Design(
        contender: .tokenService,
        reason: "One load, one answer each; sign-out is a fence; the next token is loaded before this one expires."
    ) { world, loader in
        let service = world.tokenService(loader)
        return Service(
            ask: { world.ask({ try await service.retrieveToken() }, then: $0) },
            signOut: { world.perform { _ = await service.reset() } })
    }
}
