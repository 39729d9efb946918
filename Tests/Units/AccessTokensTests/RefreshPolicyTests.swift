import AccessTokensTesting
import Testing

@testable import AccessTokens

@Suite("Guarantee 11: leeway fits the token")
struct RefreshPolicyTests {
    private let policy = RefreshPolicy()

    /// The table in the formulas' documentation.
    @Test(arguments: [
        (5, 0.5, 4.5, 3.25, 3.375), (60, 6, 54, 39, 40.5), (300, 30, 270, 195, 202.5), (600, 60, 540, 390, 405),
        (3_600, 60, 3_540, 2_640, 2_730), (86_400, 60, 86_340, 85_440, 85_530),
    ])
    func `the worked table is true`(lifetime: Int, leeway: Double, expiry: Double, earliest: Double, latest: Double) {
        let lifetime = Duration.seconds(lifetime)
        #expect(policy.leeway(forLifetime: lifetime) == .seconds(leeway))
        #expect(policy.hardExpiry(forLifetime: lifetime) == .seconds(expiry))
        #expect(policy.refreshStart(forLifetime: lifetime, refreshIn: nil, jitter: 0) == .seconds(earliest))
        #expect(policy.refreshStart(forLifetime: lifetime, refreshIn: nil, jitter: 1) == .seconds(latest))
    }

    @Test(arguments: [Duration(attoseconds: .min), .seconds(-10), .zero])
    func `a token with a lifetime of zero or less has no leeway`(lifetime: Duration) {
        #expect(policy.leeway(forLifetime: lifetime) == .zero)
        #expect(policy.hardExpiry(forLifetime: lifetime) == .zero)
    }

    // Museum 21: leeway sign inverted (gotrue-swift PR#55); leeway longer than the lifetime: busy loop (gcloud-rust#6678).
    @Test(arguments: [1, 2, 9, 59, 61, 599, 601, 7_199, 1_000_000])
    func `leeway, window and expiry stand in order for every lifetime`(seconds: Int) throws {
        let lifetime = Duration.seconds(seconds)
        let expiry = policy.hardExpiry(forLifetime: lifetime)
        for jitter in [0, 0.5, 0.999] {
            let start = try #require(policy.refreshStart(forLifetime: lifetime, refreshIn: nil, jitter: jitter))
            #expect(.zero < start && start < expiry && expiry < lifetime)
        }
    }

    @Test(arguments: [
        Duration(attoseconds: .min), .seconds(Int64.min), .seconds(-1), .zero, .seconds(Int64.max),
        Duration(attoseconds: .max),
    ])
    func `no lifetime overflows, traps or inverts`(lifetime: Duration) throws {
        let scene = Scene()
        // The longest lifetime would overflow only when added to a time.
        scene.advance(by: .seconds(100))
        _ = scene.call()
        try scene.deliver(AccessToken("a", lifetime: lifetime, refreshIn: lifetime))
        #expect((scene.service.cachedToken != nil) == (lifetime > .zero))
        scene.replace(with: AccessToken("b", lifetime: lifetime))
        #expect((scene.service.cachedToken != nil) == (lifetime > .zero))
        scene.invalidate(AccessToken("b", lifetime: lifetime))
        #expect(scene.service.cachedToken == nil)
    }

    @Test(arguments: [(1, true), (3_539, true), (3_540, false), (0, false), (-1, false)])
    func `refresh_in is honoured when it lies before hard expiry`(seconds: Int, isHonoured: Bool) {
        let start = policy.refreshStart(forLifetime: .seconds(3600), refreshIn: .seconds(seconds), jitter: 0)
        #expect((start == .seconds(seconds)) == isHonoured)
    }

    @Test(arguments: [1, 1_000, 30_000])
    func `no refresh starts within a quarter of the remaining life, at most 30 s, whatever refresh_in says`(milliseconds: Int)
        throws
    {
        let scene = Scene()
        func hasty(_ name: String) -> AccessToken {
            AccessToken(name, lifetime: .seconds(3600), refreshIn: .milliseconds(milliseconds))
        }
        _ = scene.call()
        try scene.deliver(hasty("0"))
        for second in 1...299 {
            scene.advance(by: .seconds(1))
            #expect(scene.call().isDone)
            if let load = try? scene.load() { scene.succeed(load, with: hasty("\(second)")) }
        }
        #expect(scene.loader.loadCount == 10)
    }

    @Test func `a token without lifetime is good until invalidated, and has no soft window`() throws {
        let scene = try Scene.holding(AccessToken("a"))
        scene.advance(by: .seconds(1_000_000_000))
        #expect(scene.call().value?.value == "a")
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `jitter is drawn once per token, so frequent callers don't bring a refresh nearer`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(2640))
        for _ in 0..<1_000 { _ = scene.call() }
        let loads = scene.loader.loadCount
        for _ in 0..<1_000 { _ = scene.call() }
        #expect(scene.loader.loadCount == loads)
    }

    @Test func `different seeds spread the refreshes of a fleet, equal seeds replay`() throws {
        func firstRefresh(seed: UInt64) throws -> Int {
            let scene = Scene(seed: seed)
            _ = scene.call()
            try scene.deliver(.hour("a"))
            scene.advance(by: .seconds(2640))
            for second in 0...90 {
                _ = scene.call()
                if scene.loader.loadCount == 2 { return second }
                scene.advance(by: .seconds(1))
            }
            return 91
        }
        let seconds = try (0..<20).map { try firstRefresh(seed: $0) }
        #expect(Set(seconds).count > 10)
        #expect(try (0..<20).map { try firstRefresh(seed: $0) } == seconds)
    }

    @Test(arguments: [1, 5, 60])
    func `a loader as slow as its tokens are short is called once per request, so there is no busy loop`(seconds: Int) throws {
        let scene = Scene()
        for round in 1...5 {
            let caller = scene.call()
            let load = try scene.load()
            scene.advance(by: .seconds(seconds) - .milliseconds(1))
            if seconds < 30 {
                scene.succeed(load, with: AccessToken("t\(round)", lifetime: .seconds(seconds)))
                #expect(caller.value?.value == "t\(round)")
            } else {
                scene.fail(load)
                scene.advance(by: .seconds(100))
            }
            #expect(scene.loader.loadCount == round)
        }
    }

    @Test func `values out of range are clamped`() {
        let policy = RefreshPolicy(loadTimeout: .seconds(-1), maximumLeeway: .seconds(-1), maximumRefreshWindow: .seconds(-1))
        #expect(policy.loadTimeout > .zero && policy.maximumLeeway == .zero && policy.maximumRefreshWindow == .zero)
        #expect(policy.refreshStart(forLifetime: .seconds(60), refreshIn: nil, jitter: 0) == nil)
    }

    /// The two tables in the pauses' documentation, and values beyond them.
    @Test(arguments: [
        (Int.min, 0.0, 30.0), (0, 0, 30), (1, 0, 30), (2, 1, 60), (3, 2, 120), (4, 4, 240), (5, 8, 300), (6, 16, 300),
        (7, 32, 300), (8, 60, 300), (58, 60, 300), (64, 60, 300), (Int.max, 60, 300),
    ])
    func `the tables of pauses are true`(failures: Int, load: Double, refresh: Double) {
        for (jitter, factor) in [(-1, 1), (0, 1), (.nan, 1), (0.5, 1.125), (1, 1.25), (1e300, 1.25)] as [(Double, Double)] {
            #expect(RefreshPolicy.pause(afterFailures: failures, jitter: jitter) == .seconds(load * factor))
            #expect(RefreshPolicy.refreshPause(afterFailures: failures, jitter: jitter) == .seconds(refresh * factor))
        }
    }

    @Test func `no refresh starts within a quarter of a token's remaining life, if that is less than 30 s`() throws {
        let scene = Scene()
        _ = scene.call()
        // 54 s until hard expiry.
        try scene.deliver(AccessToken("a", lifetime: .seconds(60), refreshIn: .milliseconds(1)))
        scene.advance(by: .seconds(13.4))
        _ = scene.call()
        #expect(scene.loader.loadCount == 1)
        scene.advance(by: .seconds(0.1))
        _ = scene.call()
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `no lifetime traps on a clock below its own start`() {
        for lifetime in [Duration(attoseconds: .min), .seconds(Int64.min), .seconds(-1), .zero] {
            var machine = TokenService.StateMachine(policy: policy, isRepeatable: false, seed: 1)
            let past = Duration.seconds(-100), token = AccessToken("a", lifetime: lifetime, refreshIn: lifetime)
            _ = machine.retrieve(seen: 0, at: past)
            machine.ended(.loaded(token), by: 1, at: past)
            machine.replace(with: token, at: past)
            machine.invalidate(token, at: past)
            #expect(machine.state.cached == nil)
        }
    }
}
