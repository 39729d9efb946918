import AccessTokens
import AccessTokensDispatch
import Foundation
import Interleavings
import TokenServiceConcurrency

/// A program of two to six callers of both kinds and tasks that disturb them, made of choices of the schedule.
struct MixedScenario: Sendable {
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
                loader: CallbackTokenLoader(WorldCallbackLoader(world: world, isRepeatable: isRepeatable)))
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

    /// Runs the program and checks the rules.
    @Sendable static func run(_ simulation: Simulation, isPunctual: Bool) async throws {
        let scenario = MixedScenario(simulation)
        scenario.spawnCallers()
        scenario.spawnDisturbers()
        try await simulation.settle()
        let violation = scenario.world.facts.withLock { Rules(facts: $0, isPunctual: isPunctual).firstViolation }
        try simulation.require(violation == nil, violation ?? "")
        try await scenario.checkTheEnd(isPunctual: isPunctual)
    }

    private func spawnCallers() {
        let simulation = world.simulation
        for number in 1...(2 + simulation.choose("callers", 5)) {
            let name = "caller \(number)"
            let isCallback = simulation.choose("\(name) has a handler", 2) == 1
            let task = simulation.spawn(name) { await self.call(as: name, isCallback: isCallback) }
            guard !isCallback, simulation.choose("\(name) is cancelled", 4) == 3 else { continue }
            simulation.spawn("canceller of \(name)") {
                try await wait()
                world.note(cancelled: name)
                task.cancel()
            }
        }
    }

    private func call(as name: String, isCallback: Bool) async {
        let simulation = world.simulation
        for _ in 0...simulation.choose("\(name) asks again", 3) {
            guard (try? await wait()) != nil else { return }
            let limit = simulation.choose("\(name) has a deadline", 4) == 3 ? Duration.seconds(5) : nil
            let token =
                if isCallback {
                    await world.ask(shim, by: name, within: limit)
                } else {
                    await world.ask(service, by: name, within: limit)
                }
            guard let token, simulation.choose("\(name) invalidates", 3) == 2 else { continue }
            if isCallback { world.invalidate(token, in: shim) } else { await world.invalidate(token, in: service) }
        }
    }

    private func spawnDisturbers() {
        let simulation = world.simulation
        for number in 0..<simulation.choose("disturbers", 3) {
            let kind = simulation.choose("disturber", 7)
            simulation.spawn("disturber \(number + 1)") {
                try await wait()
                switch kind {
                case 0: await world.signOut(of: service)
                case 1: await world.replace(in: service)
                case 2: await service.retryNow()
                case 3: world.signOut(of: shim)
                case 4: world.replace(in: shim)
                case 5: shim.retryNow()
                default: if let token = service.cachedToken { await world.invalidate(token, in: service) }
                }
            }
        }
    }

    /// Nothing, a moment, or until the token is about to expire, has expired, or a load is late.
    private func wait() async throws {
        let pauses: [Duration] = [.zero, .seconds(1), .seconds(31), .seconds(3000), .seconds(3540), .seconds(3600)]
        try await world.simulation.clock.sleep(for: world.simulation.choose("pause", among: pauses) ?? .zero)
    }

    /// Whatever happened, a service that is left alone and asked to try again has a token.
    ///
    /// Where time passes at any step, also the last load may be too late.
    private func checkTheEnd(isPunctual: Bool) async throws {
        world.isMended.withLock { $0 = true }
        // Beyond the guard against endless invalidation.
        try await world.simulation.clock.sleep(for: .seconds(60))
        await service.retryNow()
        let token = await world.ask(service, by: "the last caller", within: nil)
        try world.simulation.require(token != nil || !isPunctual, "afterwards there is a token")
    }
}
