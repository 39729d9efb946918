import AccessTokens
import AccessTokensDispatch
import Foundation
import Interleavings
import TokenServiceConcurrency

/// A service and its shim, whose surroundings the schedule chooses, and the operations of callers of both kinds.
struct MixedScenario: Sendable {
    enum Act: Sendable {
        case ask(within: Duration?), askByHandler(within: Duration?), askAndLeave
        case refuse, refuseByHandler, refuseCached
        case signOut, signOutByHandler
        case replace, replaceByHandler
        case retryNow, retryNowByHandler
    }

    /// Most callers ask for a token, and some refuse it.
    static let acts: [Act] = [
        .ask(within: nil), .ask(within: nil), .ask(within: nil), .ask(within: .seconds(5)),
        .askByHandler(within: nil), .askByHandler(within: nil), .askByHandler(within: nil), .askByHandler(within: .seconds(5)),
        .askAndLeave, .askAndLeave, .refuse, .refuse, .refuseByHandler, .refuseByHandler, .refuseCached,
        .signOut, .signOutByHandler, .replace, .replaceByHandler, .retryNow, .retryNowByHandler,
    ]

    let world: World
    let service: TokenService
    let shim: AccessTokenService

    init(_ simulation: Simulation) {
        let world = World(simulation)
        let isRepeatable = simulation.choose("repeatable", 2) == 1
        let isCallback = simulation.choose("loader with a handler", 2) == 1
        let clock = simulation.clock
        let wallClock: @Sendable () -> Date = { Date(timeIntervalSince1970: clock.now.offset / .seconds(1)) }
        let seed = UInt64(simulation.choose("jitter", 4))
        if isCallback {
            service = TokenService(
                environment: .driven(by: simulation.taskExecutor, clock: clock, wallClock: wallClock, seed: seed),
                loader: WorldCallbackLoader(world: world, isRepeatable: isRepeatable).tokenLoader)
        } else {
            service = TokenService(
                environment: .driven(by: simulation.taskExecutor, clock: clock, wallClock: wallClock, seed: seed),
                loader: WorldLoader(world: world, isRepeatable: isRepeatable))
        }
        let queue =
            simulation.choose("concurrent queue", 2) == 1
            ? simulation.concurrentQueue("queue") : simulation.serialQueue("queue")
        shim = AccessTokenService(service: service) { queue.async($0) }
        self.world = world
    }

    /// Performs an operation, after a pause that the schedule chooses.
    func perform(_ act: Act, as caller: String) async throws {
        try await wait()
        switch act {
        case .ask(let limit): await world.ask(service, by: caller, within: limit)
        case .askByHandler(let limit): _ = await world.ask(shim, by: caller, within: limit)
        case .askAndLeave: try await askAndLeave(caller)
        case .refuse:
            guard let token = await world.ask(service, by: caller, within: nil) else { break }
            await world.invalidate(token, in: service)
        case .refuseByHandler:
            guard let token = await world.ask(shim, by: caller, within: nil) else { break }
            world.invalidate(token, in: shim)
        case .refuseCached: if let token = service.cachedToken { await world.invalidate(token, in: service) }
        case .signOut: await world.signOut(of: service)
        case .signOutByHandler: world.signOut(of: shim)
        case .replace: await world.replace(in: service)
        case .replaceByHandler: world.replace(in: shim)
        case .retryNow: await service.retryNow()
        case .retryNowByHandler: shim.retryNow()
        }
    }

    /// Asks as a separate caller, because a cancellation is noted for all later calls of its caller.
    private func askAndLeave(_ caller: String) async throws {
        // Each caller asks, or is cancelled before it does; no two have the same number.
        let name = "\(caller), asking \(world.facts.withLock { $0.questions.count + $0.cancelled.count })"
        let asking = world.simulation.spawn(name) {
            for _ in 0...world.simulation.choose("\(name) asks again", 3) {
                guard (try? await wait()) != nil else { return }
                await world.ask(service, by: name, within: nil)
            }
        }
        world.simulation.spawn("canceller of \(name)") {
            try await wait()
            world.note(cancelled: name)
            asking.cancel()
        }
        try await asking.value
    }

    /// Checks the rules when nothing is left to run.
    func check(isPunctual: Bool) async throws {
        try await world.simulation.settle()
        let violation = world.facts.withLock { Rules(facts: $0, isPunctual: isPunctual).firstViolation }
        try world.simulation.require(violation == nil, violation ?? "")
        try await checkTheEnd(isPunctual: isPunctual)
    }

    /// Waits not at all, for a moment, or until the token is about to expire, has expired, or a load is late.
    private func wait() async throws {
        let pauses: [Duration] = [.zero, .seconds(1), .seconds(31), .seconds(3000), .seconds(3540), .seconds(3600)]
        try await world.simulation.clock.sleep(for: world.simulation.choose("pause", among: pauses) ?? .zero)
    }

    /// Checks that a service with no other callers gets a token after `retryNow()`, whatever happened before.
    ///
    /// If time can pass at any step, even the last load may be too late.
    private func checkTheEnd(isPunctual: Bool) async throws {
        world.isMended.withLock { $0 = true }
        // Beyond the guard against endless invalidation.
        try await world.simulation.clock.sleep(for: .seconds(60))
        await service.retryNow()
        let token = await world.ask(service, by: "the last caller", within: nil)
        try world.simulation.require(token != nil || !isPunctual, "afterwards there is a token")
    }
}
