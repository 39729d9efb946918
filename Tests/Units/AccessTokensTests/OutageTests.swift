import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

/// A token of an hour: hard expiry at 3,540 s, handed out after a failure until 3,594 s.
@Suite("Guarantee 44: an outage that the token survives costs no caller")
struct OutageTests {
    /// Returns a scene in which callers wait for a load that began inside the leeway.
    private func inLeeway(isRepeatable: Bool = false) throws -> (Scene, Scene.Caller, ScriptedLoader.Call) {
        let scene = try Scene.holding(.granted("a"), isRepeatable: isRepeatable)
        scene.advance(by: .seconds(3_550))
        let caller = scene.call()
        #expect(!caller.isDone)
        return (scene, caller, try scene.load())
    }

    @Test func `44: after a transient failure inside the leeway callers get the token, until shortly before its end`() throws {
        let (scene, caller, load) = try inLeeway()
        let other = scene.call(), events = scene.service.events()
        scene.fail(load)
        #expect([caller, other, scene.call()].allSatisfy { $0.value?.value == "a" })
        #expect(scene.service.cachedToken?.value == "a")
        #expect(scene.told(by: events).map(\.name) == [.refreshFailed])
        scene.advance(by: .seconds(44) - .milliseconds(1))
        #expect(scene.service.cachedToken?.value == "a")
        scene.advance(by: .milliseconds(1))
        #expect(scene.service.cachedToken == nil)
        let late = scene.call()
        scene.fail(try scene.load())
        #expect(late.code == .loadFailed, "it has 6 s left: too few for a request")
    }

    @Test(arguments: ["time-out", "given up", "expired", "salvaged"])
    func `44: any transient failure inside the leeway leaves callers the token`(kind: String) throws {
        let (scene, caller, load) = try inLeeway(isRepeatable: kind == "given up")
        switch kind {
        case "expired": scene.succeed(load, with: AccessToken("b", lifetime: .zero))
        case "salvaged":
            let grant = AccessToken("", lifetime: .zero, refreshToken: "new")
            scene.fail(load, with: SalvagedGrant(grant, reason: ScriptedFailure.transient))
        default: scene.advance(by: .seconds(30))
        }
        #expect(caller.value?.value == "a" && scene.call().value?.value == "a")
        #expect(scene.discards.isEmpty)
    }

    @Test func `44: a pause that the server asked for costs no caller before the token's end`() throws {
        let (scene, caller, load) = try inLeeway()
        scene.fail(load, with: ScriptedFailure(retryAfter: .seconds(100)))
        #expect(caller.value?.value == "a")
        scene.advance(by: .seconds(43))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 2)
        scene.advance(by: .seconds(1))
        #expect(scene.call().retryAt == 3_650)
    }

    @Test(arguments: [ScriptedFailure.grantRefused, .clientRefused, ScriptedFailure(.signInOrRegistration)])
    func `44: after a refusal, or a transient failure that follows one, the token isn't handed out`(refusal: ScriptedFailure)
        throws
    {
        let (scene, caller, load) = try inLeeway()
        scene.fail(load, with: refusal)
        #expect(caller.code == .loadFailed && scene.call().code == .loadFailed)
        scene.retryNow()
        let next = scene.call()
        scene.fail(try scene.load())
        #expect(next.code == .loadFailed && scene.service.cachedToken == nil)
    }

    @Test func `44: after a refusal ahead of the leeway, callers get the token only until hard expiry`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3_000))
        _ = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure.grantRefused)
        scene.advance(by: .seconds(540))
        let caller = scene.call()
        scene.fail(try scene.load())
        #expect(caller.code == .loadFailed)
    }

    @Test func `44: a refusal inside the leeway ends the use of the token at once`() throws {
        let (scene, _, load) = try inLeeway()
        scene.fail(load)
        scene.advance(by: .seconds(19))
        #expect(scene.call().value?.value == "a")
        scene.fail(try scene.load(), with: ScriptedFailure.grantRefused)
        #expect(scene.service.cachedToken == nil)
        #expect((scene.call().error as? TokenServiceError)?.remedy == .signIn && scene.loader.loadCount == 3)
    }

    @Test(arguments: [true, false])
    func `44: a token that was refused itself isn't handed out, before or after the failure`(before: Bool) throws {
        let (scene, caller, load) = try inLeeway()
        if before { scene.invalidate(.hour("a")) }
        scene.fail(load)
        #expect((caller.code == .loadFailed) == before)
        if !before { scene.invalidate(.hour("a")) }
        let next = scene.call()
        scene.fail(try scene.load())
        #expect(next.code == .loadFailed && scene.service.cachedToken == nil)
    }

    @Test(arguments: [true, false], [true, false])
    func `44: after a fence the old token isn't handed out, whether the fence came before or after the failure`(
        before: Bool, byReset: Bool
    ) throws {
        let (scene, _, load) = try inLeeway()
        func fence() { if byReset { scene.reset() } else { scene.replace(with: AccessToken("grant", lifetime: .zero)) } }
        if before { fence() }
        scene.fail(load)
        if !before { fence() }
        let next = scene.call()
        scene.fail(try scene.load())
        #expect(next.code == .loadFailed && scene.service.cachedToken == nil)
    }

    @Test func `44: callers get it at once while a load that must not be repeated has stalled`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3_500))
        _ = scene.call()
        scene.advance(by: .seconds(93))
        #expect(scene.call().value?.value == "a")
        scene.advance(by: .seconds(1))
        #expect(scene.call().code == .loadTimedOut && scene.loader.loadCount == 2)
    }

    @Test func `44: callers get the token while three given-up loads keep others from starting`() throws {
        let scene = try Scene.holding(.hour("a"), isRepeatable: true)
        scene.advance(by: .seconds(3_476))
        for _ in 1...3 {
            scene.retryNow()
            _ = scene.call()
            scene.advance(by: .seconds(30))
        }
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 4)
        scene.advance(by: .seconds(28))
        #expect(scene.call().code == .loadTimedOut)
    }

    @Test func `44: inside the leeway the next attempt comes after a quarter of it, and no caller waits`() throws {
        let (scene, _, load) = try inLeeway()
        scene.fail(load)
        scene.advance(by: .seconds(15) - .milliseconds(1))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 2)
        scene.advance(by: .seconds(3.75) + .milliseconds(2))
        #expect(scene.call().value?.value == "a")
        try scene.deliver(.hour("b"))
        #expect(scene.call().value?.value == "b")
    }

    @Test func `44: a token that arrived or was restored inside its leeway also survives a transient failure`() throws {
        let scene = Scene()
        _ = scene.call()
        let slow = try scene.load()
        scene.advance(by: .seconds(18.5))
        scene.succeed(slow, with: AccessToken("slow", lifetime: .seconds(20)))
        let caller = scene.call()
        scene.fail(try scene.load())
        #expect(caller.value?.value == "slow")

        let stored = StoredToken(.granted("stored"), received: Date(timeIntervalSince1970: -3_550))
        let second = Scene(store: ScriptedStore(stored)), restored = second.call()
        second.fail(try second.load())
        #expect(restored.value?.value == "stored")
    }

    @Test func `44: a token without leeway survives no failure`() throws {
        let scene = try Scene.holding(.hour("a"), policy: RefreshPolicy(maximumLeeway: .zero))
        scene.advance(by: .seconds(3_599))
        _ = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure.clientRefused)
        #expect(scene.service.cachedToken?.value == "a", "a refusal before hard expiry leaves the token")
        scene.advance(by: .seconds(1))
        let caller = scene.call()
        scene.fail(try scene.load())
        #expect(caller.code == .loadFailed)
    }

    /// Returns the number of errors for callers that ask without a pause, while the server fails from the first refresh on until
    /// `left` steps before the token's last use.
    private func errors(lifetime: Int, untilEnd left: Double) throws -> Int {
        let scene = try Scene.holding(AccessToken("a", lifetime: .seconds(lifetime)))
        let policy = RefreshPolicy(), step = Duration.seconds(lifetime) / 2_000
        let lastUse = policy.lastUse(forLifetime: .seconds(lifetime))
        scene.advance(by: try #require(policy.refreshStart(forLifetime: .seconds(lifetime), refreshIn: nil, jitter: 0)))
        var errors = 0, loads = 1, end: Duration?
        while scene.clock.now.offset < .seconds(lifetime) {
            let caller = scene.call(), now = scene.clock.now.offset
            if scene.loader.loadCount > loads {
                loads += 1
                end = end ?? lastUse - step * left
                if let end, end <= now { try scene.deliver(.hour("b")) } else { scene.fail(try scene.load()) }
            }
            if caller.error != nil { errors += 1 }
            if caller.value?.value == "b" { break }
            scene.advance(by: step)
        }
        return errors
    }

    @Test(arguments: [5, 60, 300, 3_600])
    func `44: an outage as long as the table says costs no caller, a longer one does`(lifetime: Int) throws {
        #expect(try errors(lifetime: lifetime, untilEnd: 0) == 0)
        #expect(try errors(lifetime: lifetime, untilEnd: -3) > 0)
    }

    /// The table in the formula's documentation.
    @Test(arguments: [
        (5, 4_950, 1_575), (60, 59_400, 18_900), (300, 297_000, 94_500), (600, 594_000, 189_000), (3_600, 3_594_000, 864_000),
        (86_400, 86_394_000, 864_000),
    ])
    func `44: the worked table is true`(lifetime: Int, lastUse: Int, outage: Int) throws {
        let policy = RefreshPolicy(), lifetime = Duration.seconds(lifetime), last = policy.lastUse(forLifetime: lifetime)
        let opensAtLatest = try #require(policy.refreshStart(forLifetime: lifetime, refreshIn: nil, jitter: 1))
        #expect(last == .milliseconds(lastUse) && last - opensAtLatest == .milliseconds(outage))
    }
}
