import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 49: the limit on loads stops loads, never a caller that was not refused itself")
struct RefusalLimitTests {
    /// A scene whose limit is on from 5 s to 31 s, and whose service has the token "5".
    private static func limited(last: AccessToken = .hour("5")) throws -> Scene {
        let scene = try Scene.holding(.hour("0"))
        for number in 1...5 {
            scene.advance(by: .seconds(1))
            scene.invalidate(.hour("\(number - 1)"))
            _ = scene.call()
            try scene.deliver(number == 5 ? last : .hour("\(number)"))
        }
        return scene
    }

    private static func retry(_ scene: Scene, _ refused: AccessToken) -> Scene.Caller {
        scene.stage.start { [service = scene.service] in try await service.retrieveToken(insteadOf: refused) }
    }

    @Test func `49: while the limit is on, a refused token is handed out once more, and a second refusal is told`() throws {
        let scene = try Self.limited(), held = try #require(scene.call().value)
        let second = try #require(Self.retry(scene, held).value)
        #expect(second.value == "5" && second == held)
        #expect(scene.call().value?.value == "5", "others weren't refused")
        let told = Self.retry(scene, second)
        #expect(told.code == .tooManyInvalidations && told.retryAt == 31)
        #expect(Self.retry(scene, held).value?.value == "5", "each caller has its own retry")
        #expect(Self.retry(scene, AccessToken("5")).value?.value == "5", "the text of a header is enough")
        #expect(scene.loader.loadCount == 6)
    }

    @Test func `49: a refusal that isn't repeated leaves the token in use while the limit is on`() throws {
        let scene = try Self.limited()
        for _ in 1...3 { scene.invalidate(.hour("5")) }
        #expect(scene.call().value?.value == "5" && scene.service.cachedToken?.value == "5")
        #expect(scene.loader.loadCount == 6)
    }

    @Test(arguments: [true, false])
    func `49: once the limit is off, the refused token is dropped, and the next load counts`(hasLifetime: Bool) throws {
        let scene = try Self.limited(last: AccessToken("5", lifetime: hasLifetime ? .seconds(3600) : nil))
        scene.invalidate(.hour("5"))
        scene.advance(by: .milliseconds(25_999))
        #expect(scene.call().value?.value == "5")
        scene.advance(by: .milliseconds(1))
        #expect(scene.service.cachedToken == nil)
        let next = scene.call()
        try scene.deliver(.hour("6"))
        #expect(next.value?.value == "6")
        // The oldest of the five loads that count is now the one at 2 s.
        #expect(Self.retry(scene, .hour("6")).value?.value == "6")
        #expect(Self.retry(scene, try #require(Self.retry(scene, .hour("6")).value)).retryAt == 32)
    }

    @Test func `49: a load that the end of the refused token needs starts, and does not count`() throws {
        let scene = try Self.limited(last: AccessToken("5", lifetime: .seconds(10)))
        scene.invalidate(.hour("5"))
        scene.advance(by: .milliseconds(8_999))
        #expect(scene.call().value?.value == "5")
        if let refresh = try? scene.load() { scene.fail(refresh) }
        scene.advance(by: .milliseconds(1))
        let caller = scene.call()
        #expect(!caller.isDone, "a refused token is not handed out inside its leeway")
        try scene.deliver(.hour("6"))
        #expect(caller.value?.value == "6")
        let second = try #require(Self.retry(scene, .hour("6")).value)
        #expect(Self.retry(scene, second).retryAt == 31)
    }

    @Test func `49: a refused token whose refresh is under way waits for it, though the limit is on`() throws {
        let scene = try Self.limited(last: AccessToken("5", lifetime: .seconds(10)))
        scene.advance(by: .seconds(8))
        #expect(scene.call().value?.value == "5")
        let caller = Self.retry(scene, .hour("5"))
        try scene.deliver(.hour("6"))
        #expect(caller.value?.value == "6")
    }

    @Test func `49: a token that a fence installs while the limit is on ends the limit`() throws {
        let scene = try Self.limited()
        let second = try #require(Self.retry(scene, .hour("5")).value)
        scene.replace(with: .hour("given"))
        #expect(Self.retry(scene, second).value?.value == "given")
        let caller = Self.retry(scene, .hour("given"))
        try scene.deliver(.hour("next"))
        #expect(caller.value?.value == "next")
    }

    @Test func `49: the first refusal under the limit is an event, with the moment at which it ends`() throws {
        let scene = try Self.limited(), events = scene.service.events()
        for _ in 1...3 { scene.invalidate(.hour("5")) }
        let told = scene.told(by: events)
        #expect(told.map(\.name) == [.invalidated])
        #expect(told.first?.error?.code == .tooManyInvalidations && told.first?.error?.retryAt?.timeIntervalSince1970 == 31)
    }

    // MARK: Figures

    /// Calls of resources that refuse requests at random: 8 callers for 40 s, each with a request every 40 ms; a load takes 0.1 s.
    @Test(arguments: zip([1, 2, 10, 50, 2], [Fleet.service, .service, .service, .service, .keys]))
    func `49: with refusals at a rate r and nothing revoked at most r² of the calls fail, each after two of its own`(
        percent: Int, fleet: Fleet
    ) throws {
        let trial = RefusalTrial(refusing: percent, fleet: fleet)
        trial.run()
        let rate = Double(percent) / 100, calls = Double(trial.calls), expected = rate * rate * calls
        #expect(trial.calls > 7_000 && trial.unfounded == 0, "\(trial.text)")
        #expect(Double(trial.failures) <= expected + 4 * expected.squareRoot() + 1, "\(trial.text)")
        #expect(trial.mostLoads <= 5, "\(trial.text)")
    }

    @Test(arguments: [1, 2, 10, 50])
    func `49: with tokens that are really revoked the server gets at most 5 loads in 30 s, and each failed call learns when`(
        percent: Int
    ) throws {
        let trial = RefusalTrial(refusing: percent, fleet: .service, revokes: true)
        trial.run()
        #expect(trial.calls > 7_000 && trial.unfounded == 0 && trial.mostLoads <= 5, "\(trial.text)")
        // Before the limit is on, each of ten loads may be followed by refusals of all its callers.
        #expect(trial.told > 0 && trial.told >= trial.failures - 10 * 8 * 5, "\(trial.text)")
    }

    @Test func `49: an endpoint that refuses every token costs the callers of the others nothing`() throws {
        let trial = RefusalTrial(refusing: 0, fleet: .service, hasBrokenEndpoint: true)
        trial.run()
        #expect(trial.calls > 6_000 && trial.failures == 0 && trial.unfounded == 0 && trial.mostLoads <= 5, "\(trial.text)")
        #expect(trial.broken.told + 10 * 5 >= trial.broken.calls, "\(trial.text)")
    }

    enum Fleet { case service, keys }
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
    private let share: Double, revokes: Bool, hasBrokenEndpoint: Bool
    private let fleet: RefusalLimitTests.Fleet

    init(refusing percent: Int, fleet: RefusalLimitTests.Fleet, revokes: Bool = false, hasBrokenEndpoint: Bool = false) {
        share = Double(percent) / 100
        self.revokes = revokes
        self.hasBrokenEndpoint = hasBrokenEndpoint
        self.fleet = fleet
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
            return AccessToken("\(number)", lifetime: .seconds(300))
        }
        let services = TokenServices<String>(environment: environment) { _, previous in try await load(previous) }
        let tokens =
            switch fleet {
            case .service: TokenService(environment: environment) { try await load($0) }
            case .keys: services["key"]
            }
        for _ in 0..<1_000 {
            for caller in 0..<8 {
                let isBroken = hasBrokenEndpoint && caller == 0
                _ = stage.start { await self.call(tokens, toBrokenEndpoint: isBroken) }
            }
            clock.advance(by: .milliseconds(40))
            stage.run()
        }
        clock.advance(by: .seconds(1))
        stage.run()
    }

    private func call(_ tokens: TokenService, toBrokenEndpoint isBroken: Bool) async {
        var refusals = 0, told = false, failed = false
        do {
            let token = try await tokens.retrieveToken()
            if refuses(token, isBroken) {
                refusals = 1
                let second = try await tokens.retrieveToken(insteadOf: token)
                if refuses(second, isBroken) {
                    refusals = 2
                    _ = try await tokens.retrieveToken(insteadOf: second, within: .zero)
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
