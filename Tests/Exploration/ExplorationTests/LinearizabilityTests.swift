import AccessTokens
import Interleavings
import InterleavingsTesting
import RaceGallery
import TestBudgets
import Testing
import TokenServiceConcurrency

/// What callers of any token service can do.
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

/// The naive actor knows neither `invalidate` nor `replace`.
private struct Naive: Subject {
    let service: ReentrantTokenService

    func retrieve() async throws -> AccessToken { try await service.retrieveToken() }
    func invalidate(_ token: AccessToken) async {}
    func replace(with token: AccessToken) async {}
    func reset() async { await service.signOut() }
}

/// Callers who do what the schedule chooses, and the history of it.
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

    /// The last load whose token has certainly expired by now.
    var expired: Int { loads(before: time - Self.lifetime) }

    /// The last load whose token a service may take for expired: a lifetime counts from the moment at which the service decides to load,
    /// and the loader may be called up to 30 s later.
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
        try? await history.record(caller, .retrieve(expired: expired)) {
            try await subject.retrieve()
        } outcome: { result in
            switch result {
            case .success(let token): .token(Int(token.value) ?? 0, expired: self.perhapsExpired)
            case .failure(is CancellationError): .cancelled
            case .failure(let error as TokenServiceError) where error.code == .reset: .reset
            case .failure: .failure(expired: self.perhapsExpired)
            }
        }
    }

    /// Three turns of what a program does with its token service.
    func act(as caller: String, on subject: some Subject) async {
        for turn in 1...3 {
            let loadsBefore = loads.withLock { $0.count }
            switch simulation.choose("\(caller), turn \(turn)", 8) {
            case 0...3: _ = await retrieve(as: caller, from: subject)
            case 4:
                guard let token = await retrieve(as: caller, from: subject) else { break }
                await record(caller, .invalidate(Int(token.value) ?? 0)) { await subject.invalidate(token) }
            case 5: await record(caller, .reset(loadsBefore: loadsBefore)) { await subject.reset() }
            case 6:
                let name = simulation.choose("replacement", 2) - 2
                let token = AccessToken("\(name)", lifetime: nil)
                await record(caller, .replace(with: name, loadsBefore: loadsBefore)) { await subject.replace(with: token) }
            default: try? await simulation.clock.sleep(for: Self.lifetime)
            }
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
    /// Without a soft window or leeway a token lives exactly as long as it says.
    private static let policy = RefreshPolicy(maximumLeeway: .zero, maximumRefreshWindow: .zero)

    private static func explore(
        _ simulation: Simulation, _ make: (Crowd) -> some Subject
    ) async throws {
        let crowd = Crowd(simulation)
        let subject = make(crowd)
        for number in 1...3 {
            let caller = simulation.spawn("caller \(number)") { await crowd.act(as: "caller \(number)", on: subject) }
            if simulation.choose("caller \(number) is cancelled", 5) == 4 {
                simulation.spawn("canceller \(number)") { caller.cancel() }
            }
        }
        try await simulation.settle()
        try crowd.history.requireLinearizable()
    }

    @Test func `what TokenService's callers see could have happened one after another`() async throws {
        try await Interleavings.explore(.mixed(schedules: .everyday(400, thorough: 2_000))) { simulation in
            try await Self.explore(simulation) { crowd in
                Ours(
                    service: TokenService(
                        policy: Self.policy, environment: .driven(by: simulation.taskExecutor, clock: simulation.clock)
                    ) { _ in try await crowd.load() })
            }
        }
    }

    @Test func `what the naive actor's callers see could not have happened one after another`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await Interleavings.explore(.mixed(schedules: 2_000)) { simulation in
                try await Self.explore(simulation) { crowd in
                    Naive(service: ReentrantTokenService(loader: CrowdLoader(crowd: crowd), clock: simulation.clock))
                }
            }
        }
        #expect(failure?.underlying is NotLinearizable)
    }
}

private struct CrowdLoader: TokenLoader {
    let crowd: Crowd

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken { try await crowd.load() }
}
