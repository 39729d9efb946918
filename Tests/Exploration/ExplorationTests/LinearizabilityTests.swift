import AccessTokens
import Interleavings
import InterleavingsTesting
import RaceGallery
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The operations of any token service.
private protocol Subject: Sendable {
    func retrieve() async throws -> AccessToken
    func invalidate(_ token: AccessToken) async
    func replace(with token: AccessToken) async
    func reset() async
}

private struct Ours: Subject {
    let service: TokenService

    func retrieve() async throws -> AccessToken { try await service.retrieveToken() }
    func invalidate(_ token: AccessToken) async { await service.invalidate(token) }
    func replace(with token: AccessToken) async { await service.replace(with: token) }
    func reset() async { _ = await service.reset() }
}

/// The naive actor has neither `invalidate` nor `replace`.
private struct Naive: Subject {
    let service: ReentrantTokenService

    func retrieve() async throws -> AccessToken { try await service.retrieveToken() }
    func invalidate(_ token: AccessToken) async {}
    func replace(with token: AccessToken) async {}
    func reset() async { await service.signOut() }
}

/// A caller's operation; replacements are numbered from -1 downwards.
private indirect enum Act: Sendable {
    case retrieve, invalidate, reset, pause
    case replace(Int)
    /// Is cancelled at some time.
    case leaving(Act)

    /// Most operations request a token.
    static let usual: [Act] = [
        .retrieve, .retrieve, .retrieve, .retrieve, .invalidate, .reset, .replace(-1), .replace(-2), .pause,
        .leaving(.retrieve), .leaving(.invalidate), .leaving(.reset), .leaving(.replace(-1)),
    ]
}

/// A token service's callers, and the history of what they do.
private final class Crowd: Sendable {
    let simulation: Simulation
    let history = History(OneTokenAtATime())
    /// When each load began.
    let loads = Lock<[Duration]>([])
    static let lifetime = Duration.seconds(1000)

    init(_ simulation: Simulation) {
        self.simulation = simulation
    }

    var time: Duration { simulation.clock.now.offset }

    /// The last load whose token has certainly expired.
    var expired: Int { loads(before: time - Self.lifetime) }

    /// The last load whose token a service may consider expired: a lifetime counts from the moment at which the service decides
    /// to load, and the loader may be called up to 30 s later.
    var perhapsExpired: Int { loads(before: time - Self.lifetime + RefreshPolicy().loadTimeout) }

    private func loads(before time: Duration) -> Int { loads.withLock { $0.count { $0 <= time } } }

    func load() async throws -> AccessToken {
        let time = time
        let number = loads.withLock { loads in
            loads.append(time)
            return loads.count
        }
        let fails = simulation.choose("load \(number) fails", 4) == 3
        try await simulation.clock.sleep(for: .seconds(1))
        if fails { throw LoadFailure(remedy: .retry) }
        return AccessToken("\(number)", lifetime: Self.lifetime)
    }

    func retrieve(as caller: String, from subject: some Subject) async -> AccessToken? {
        var token: AccessToken?
        await history.record(caller, .retrieve(expired: expired)) {
            await .retrieving(&token, expired: { self.perhapsExpired }) { try await subject.retrieve() }
        }
        return token
    }

    /// Performs one of a program's operations on its token service.
    func perform(_ act: Act, as caller: String, on subject: some Subject) async throws {
        let loadsBefore = loads.withLock { $0.count }
        switch act {
        case .retrieve: _ = await retrieve(as: caller, from: subject)
        case .leaving(let act):
            let acting = simulation.spawn("\(caller), leaving") { try await self.perform(act, as: caller, on: subject) }
            simulation.spawn("canceller of \(caller)") { acting.cancel() }
            try await acting.value
        case .invalidate:
            guard let token = await retrieve(as: caller, from: subject) else { break }
            await record(caller, .invalidate(Int(token.value) ?? 0)) { await subject.invalidate(token) }
        case .reset: await record(caller, .reset(loadsBefore: loadsBefore)) { await subject.reset() }
        case .replace(let name):
            let token = AccessToken("\(name)", lifetime: nil)
            await record(caller, .replace(with: name, loadsBefore: loadsBefore)) { await subject.replace(with: token) }
        case .pause: try await simulation.clock.sleep(for: Self.lifetime)
        }
    }

    private func record(
        _ caller: String, _ operation: OneTokenAtATime.Operation, _ body: () async -> Void
    ) async {
        await history.record(caller, operation) {
            await body()
            return .done
        }
    }
}

@Suite(.exploring()) struct `Seen by its callers` {
    /// Without a soft window or leeway, a token is handed out for exactly its lifetime.
    private static let policy = RefreshPolicy(maximumLeeway: .zero, maximumRefreshWindow: .zero)

    /// Explores programs of callers on a service.
    private static func explore<S: Subject>(
        _ acts: [Act] = Act.usual, _ make: @escaping @Sendable (Crowd) -> S
    ) async throws {
        for time in [TimeModel.whenIdle, .anytime] {
            try await exploreOperations(
                acts, programs: .random(.everyday(30, thorough: 250)), schedules: .mixed(schedules: 4), time: time
            ) { simulation in
                let crowd = Crowd(simulation)
                return (crowd: crowd, service: make(crowd))
            } perform: { scene, act, caller in
                try await scene.crowd.perform(act, as: caller, on: scene.service)
            } check: { scene in
                try scene.crowd.history.requireLinearizable()
            }
        }
    }

    @Test func `TokenService's answers to its callers are linearizable`() async throws {
        try await Self.explore { crowd in
            let simulation = crowd.simulation
            return Ours(
                service: TokenService(
                    policy: Self.policy, environment: .driven(by: simulation.taskExecutor, clock: simulation.clock)
                ) { _ in try await crowd.load() })
        }
    }

    @Test func `the naive actor's answers to its callers are not linearizable`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await Self.explore([.retrieve, .reset, .pause]) { crowd in
                Naive(service: ReentrantTokenService(loader: CrowdLoader(crowd: crowd), clock: crowd.simulation.clock))
            }
        }
        #expect(failure?.underlying is NotLinearizable)
        // Two callers who ask at once.
        #expect(failure?.program == "0|0")
    }
}

private struct CrowdLoader: TokenLoader {
    let crowd: Crowd

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken { try await crowd.load() }
}
