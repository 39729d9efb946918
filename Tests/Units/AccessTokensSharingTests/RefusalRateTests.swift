import AccessTokens
import AccessTokensDispatch
import AccessTokensKeys
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 49, in numbers")
struct RefusalRateTests {
    /// Calls of resources that refuse requests at random: 8 callers for 40 s, each with a request every 40 ms; a load takes 0.1 s.
    @Test(arguments: [
        (1, Surface.service), (2, .service), (10, .service), (50, .service), (2, .key), (2, .callbacks), (2, .shared),
        (50, .shared),
    ])
    func `49: with refusals at a rate r and nothing revoked at most r² of the calls fail, each after two of its own`(
        percent: Int, surface: Surface
    ) throws {
        let trial = RefusalTrial(refusing: percent, surface: surface)
        trial.run()
        let rate = Double(percent) / 100, calls = Double(trial.calls), expected = rate * rate * calls
        #expect(trial.calls > 7_000 && trial.unfounded == 0, "\(trial.text)")
        #expect(Double(trial.failures) <= expected + 4 * expected.squareRoot() + 1, "\(trial.text)")
        #expect(trial.mostLoads <= 5 * surface.services, "\(trial.text)")
    }

    @Test(arguments: zip([1, 2, 10, 50, 2], [Surface.service, .service, .service, .service, .shared]))
    func `49: if tokens are really revoked, the server gets at most 5 loads in 30 s, and failed calls learn when`(
        percent: Int, surface: Surface
    ) throws {
        let trial = RefusalTrial(refusing: percent, surface: surface, revokes: true)
        trial.run()
        #expect(trial.calls > 7_000 && trial.unfounded == 0 && trial.mostLoads <= 5 * surface.services, "\(trial.text)")
        // Before the limit is on, each of ten loads may be followed by refusals of all its callers.
        #expect(trial.told > 0 && trial.told >= trial.failures - 10 * 8 * 5, "\(trial.text)")
    }

    // Platforms return the same token for a workload until it expires.
    @Test(arguments: zip([2, 10, 2, 2], [Surface.service, .service, .key, .shared]))
    func `49: with a server that issues one token until it expires, at most r² of the calls fail`(percent: Int, surface: Surface)
        throws
    {
        let trial = RefusalTrial(refusing: percent, surface: surface, isCached: true)
        trial.run()
        let rate = Double(percent) / 100, expected = rate * rate * Double(trial.calls)
        #expect(trial.calls > 7_000 && trial.unfounded == 0, "\(trial.text)")
        #expect(Double(trial.failures) <= expected + 4 * expected.squareRoot() + 1, "\(trial.text)")
        #expect(trial.mostLoads <= 5 * surface.services, "\(trial.text)")
    }

    @Test func `49: an endpoint that refuses every token costs the callers of the others nothing`() throws {
        let trial = RefusalTrial(refusing: 0, surface: .service, hasBrokenEndpoint: true)
        trial.run()
        #expect(trial.calls > 6_000 && trial.failures == 0 && trial.unfounded == 0 && trial.mostLoads <= 5, "\(trial.text)")
        #expect(trial.broken.told + 10 * 5 >= trial.broken.calls, "\(trial.text)")
    }
}

/// Where the calls' tokens come from.
enum Surface {
    case service, key, callbacks
    /// Three services over one record, each with a limit of its own.
    case shared

    var services: Int { self == .shared ? 3 : 1 }
}

/// Counts what happens to calls whose tokens a server refuses at random, in virtual time.
private final class RefusalTrial: Sendable {
    private struct State {
        var random = SplitMix64(seed: 49)
        var calls = 0, failures = 0, unfounded = 0, told = 0
        var broken = (calls: 0, told: 0)
        var loads: [Duration] = []
        var revoked: Set<String> = []
    }

    private let state = Lock(State())
    private let stage = Stage(), clock = ManualClock()
    private let share: Double, revokes: Bool, hasBrokenEndpoint: Bool, isCached: Bool
    private let surface: Surface

    init(refusing percent: Int, surface: Surface, revokes: Bool = false, hasBrokenEndpoint: Bool = false, isCached: Bool = false)
    {
        share = Double(percent) / 100
        self.revokes = revokes
        self.hasBrokenEndpoint = hasBrokenEndpoint
        self.isCached = isCached
        self.surface = surface
    }

    var calls: Int { state.withLock { $0.calls } }
    var failures: Int { state.withLock { $0.failures } }
    /// Calls that failed without two refusals of their own.
    var unfounded: Int { state.withLock { $0.unfounded } }
    /// Calls that were told when the next load may start.
    var told: Int { state.withLock { $0.told } }
    var broken: (calls: Int, told: Int) { state.withLock { $0.broken } }

    /// The most loads in any 30 s, but for the first token's.
    var mostLoads: Int {
        let loads = state.withLock { Array($0.loads.dropFirst()) }
        return loads.map { start in loads.count { start <= $0 && $0 < start + .seconds(30) } }.max() ?? 0
    }

    var text: String {
        "\(failures) of \(calls) calls failed, \(unfounded) without two refusals, \(told) were told when; at most \(mostLoads) loads "
            + "in 30 s; \(broken.told) of \(broken.calls) at the broken endpoint were told"
    }

    func run() {
        let environment = TokenService.Environment.driven(by: stage, clock: clock, wallClock: { Date(timeIntervalSince1970: 0) })
        let start = clock.now
        let load: @Sendable (AccessToken?) async throws -> AccessToken = { [self] _ in
            let number = state.withLock { state in
                state.loads.append(start.duration(to: clock.now))
                return state.loads.count
            }
            try await clock.sleep(for: .milliseconds(100))
            return AccessToken(isCached ? "same" : "\(number)", lifetime: .seconds(300))
        }
        let services = TokenServices<String>(environment: environment) { _, previous in try await load(previous) }
        let store = InMemorySharedTokenStore()
        let tokens =
            switch surface {
            case .service, .callbacks: [TokenService(environment: environment) { try await load($0) }]
            case .key: [services["key"]]
            case .shared:
                (1...surface.services).map { _ in
                    TokenService(sharedStore: store, environment: environment) { try await load($0) }
                }
            }
        let shims = surface == .callbacks ? tokens.map { AccessTokenService(service: $0) { $0() } } : []
        for _ in 0..<1_000 {
            for caller in 0..<8 {
                let isBroken = hasBrokenEndpoint && caller == 0
                let service = tokens[caller % tokens.count], shim = shims.first
                _ = stage.start {
                    await self.call(toBrokenEndpoint: isBroken) { refused in
                        guard let shim else {
                            guard let refused else { return try await service.retrieveToken() }
                            return try await service.retrieveToken(insteadOf: refused)
                        }
                        let answer = SingleResult<AccessToken>()
                        if let refused {
                            shim.retrieveToken(insteadOf: refused) { answer.complete(with: $0) }
                        } else {
                            shim.retrieveToken { answer.complete(with: $0) }
                        }
                        return try await answer.value()
                    }
                }
            }
            clock.advance(by: .milliseconds(40))
            stage.run()
        }
        clock.advance(by: .seconds(1))
        stage.run()
    }

    /// - Parameter retrieve: Returns a token, or one instead of a refused one.
    private func call(
        toBrokenEndpoint isBroken: Bool, _ retrieve: @Sendable (_ refused: AccessToken?) async throws -> AccessToken
    ) async {
        var refusals = 0, told = false, failed = false
        do {
            let token = try await retrieve(nil)
            if refuses(token, isBroken) {
                refusals = 1
                let second = try await retrieve(token)
                if refuses(second, isBroken) {
                    refusals = 2
                    _ = try await retrieve(second)
                }
            }
        } catch {
            failed = true
            told = (error as? TokenServiceError)?.code == .tooManyInvalidations && (error as? TokenServiceError)?.retryAt != nil
        }
        state.withLock { state in
            if isBroken {
                state.broken.calls += 1
                if told { state.broken.told += 1 }
                return
            }
            state.calls += 1
            if refusals == 2 { state.failures += 1 } else if failed { state.unfounded += 1 }
            if told { state.told += 1 }
        }
    }

    private func refuses(_ token: AccessToken, _ isBroken: Bool) -> Bool {
        state.withLock { state in
            let isUnlucky = isBroken || Double.random(in: 0..<1, using: &state.random) < share
            if isUnlucky, revokes { state.revoked.insert(token.value) }
            return isUnlucky || state.revoked.contains(token.value)
        }
    }
}
