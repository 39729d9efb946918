import AccessTokens
import AccessTokensDispatch
import Interleavings
import TokenServiceConcurrency

/// One execution's service, shim and loads, and the facts about them.
final class World: Sendable {
    let simulation: Simulation
    let facts = Lock(Facts())
    /// From now on every load succeeds at once.
    let isMended = Lock(false)

    init(_ simulation: Simulation) {
        self.simulation = simulation
    }

    var time: Duration { simulation.clock.now.offset }

    /// How long the next load takes.
    private func nextLatency(_ number: Int) -> Duration {
        if isMended.withLock({ $0 }) { return .zero }
        // In time, late, and so late that no caller is waiting: the limit is 30 seconds.
        return simulation.choose(
            "latency of load \(number)", among: [.zero, .seconds(1), .seconds(29), .seconds(40), .seconds(500)])
            ?? .zero
    }

    private func nextResult(_ number: Int) -> Result<AccessToken, any Error> {
        let kind = isMended.withLock { $0 } ? 0 : simulation.choose("result of load \(number)", 6)
        return switch kind {
        case 0, 1: .success(AccessToken("token \(number)", lifetime: .seconds(3600)))
        case 2: .success(AccessToken("token \(number)", lifetime: nil))
        case 3: .success(AccessToken("token \(number)", lifetime: .seconds(60)))
        case 4: .failure(LoadFailure(remedy: .retry))
        default: .failure(LoadFailure(remedy: simulation.choose("remedy", among: [.signIn, .clientRegistration]) ?? .signIn))
        }
    }

    /// Begins a load, as its server sees it.
    func beginLoad() -> Int {
        let number = facts.withLock { facts in
            facts.loads.append(Facts.Load(began: facts.tick(), beganAt: time))
            return facts.loads.count - 1
        }
        simulation.log("load \(number) begins")
        return number
    }

    /// Ends the load after a time.
    func load(_ number: Int) async throws -> AccessToken {
        let latency = nextLatency(number)
        let result = nextResult(number)
        do { try await simulation.clock.sleep(for: latency) } catch {
            end(number, with: .failure(error), isCancelled: true)
            throw error
        }
        end(number, with: result, isCancelled: false)
        return try result.get()
    }

    private func end(_ number: Int, with result: Result<AccessToken, any Error>, isCancelled: Bool) {
        simulation.log("load \(number) ends: \(result)")
        facts.withLock { facts in
            facts.loads[number].ended = facts.tick()
            facts.loads[number].endedAt = time
            facts.loads[number].wasCancelled = isCancelled
            facts.loads[number].token = try? result.get()
            if case .failure = result { facts.loads[number].hasFailed = true }
        }
    }
}

/// Why a load fails.
struct LoadFailure: TokenLoadFailure {
    let remedy: TokenServiceError.Remedy
}

/// The loads of a world, for async services.
struct WorldLoader: TokenLoader {
    let world: World
    let isRepeatable: Bool

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        try await world.load(world.beginLoad())
    }
}

/// The loads of a world behind a completion handler, which is called twice.
struct WorldCallbackLoader: AccessTokenLoader {
    let world: World
    let isRepeatable: Bool

    func load(then handler: @escaping @Sendable (Result<AccessToken, any Error>) -> Void) {
        let number = world.beginLoad()
        Task.detached(executorPreference: world.simulation.taskExecutor) { [world] in
            let result: Result<AccessToken, any Error>
            do { result = .success(try await world.load(number)) } catch { result = .failure(error) }
            handler(result)
            handler(.success(AccessToken("a second answer", lifetime: nil)))
        }
    }
}
