import AccessTokensTesting
import Testing

@testable import AccessTokens

/// A repeatable loader whose first load has taken too long, and whose second one runs: both may bring a grant.
@Suite("Of two loads that both succeed the younger one's grant stays, and the other is handed over")
struct SupersededTests {
    private static func twoLoads(_ store: ScriptedStore?) throws -> (Scene, old: ScriptedLoader.Call, young: ScriptedLoader.Call)
    {
        let scene = Scene(isRepeatable: true, store: store)
        _ = scene.call()
        let old = try scene.load()
        scene.advance(by: .seconds(30))
        _ = scene.call()
        return (scene, old, try scene.load())
    }

    private func expectYoung(_ scene: Scene, _ store: ScriptedStore?) {
        #expect(scene.discards == ["old superseded"])
        #expect(scene.call().value?.value == "young")
        if let store { #expect(store.contents?.value == "young") }
        #expect(scene.signOut().value?.discarded.map(\.value) == ["young"])
        #expect(scene.discards == ["old superseded", "young signedOut"])
    }

    @Test(arguments: [true, false], [true, false])
    func `whichever comes first`(isOldFirst: Bool, hasStore: Bool) throws {
        let store = hasStore ? ScriptedStore() : nil
        let (scene, old, young) = try Self.twoLoads(store)
        if isOldFirst { scene.succeed(old, with: .granted("old")) }
        scene.succeed(young, with: .granted("young"))
        if !isOldFirst { scene.succeed(old, with: .granted("old")) }
        expectYoung(scene, store)
    }

    @Test(arguments: [true, false])
    func `while the first of the two is being saved`(isOldFirst: Bool) throws {
        let store = ScriptedStore()
        let (scene, old, young) = try Self.twoLoads(store)
        store.hold()
        let (first, second) = isOldFirst ? (old, young) : (young, old)
        scene.succeed(first, with: .granted(isOldFirst ? "old" : "young"))
        scene.succeed(second, with: .granted(isOldFirst ? "young" : "old"))
        scene.release(store)
        expectYoung(scene, store)
    }

    @Test(arguments: [true, false])
    func `while the first of the two has been saved for too long`(isOldFirst: Bool) throws {
        let store = ScriptedStore()
        let (scene, old, young) = try Self.twoLoads(store)
        store.hold()
        let (first, second) = isOldFirst ? (old, young) : (young, old)
        scene.succeed(first, with: .granted(isOldFirst ? "old" : "young"))
        scene.advance(by: .seconds(5))
        scene.succeed(second, with: .granted(isOldFirst ? "young" : "old"))
        scene.release(store)
        expectYoung(scene, store)
    }

    @Test func `a save that another one makes pointless before it begins loses no grant either`() throws {
        let store = ScriptedStore()
        let (scene, oldest, older) = try Self.twoLoads(store)
        scene.advance(by: .seconds(30))
        scene.retryNow()
        let caller = scene.call(), young = try scene.load()
        store.hold()
        scene.fail(oldest, with: SalvagedGrant(.granted("salvaged"), reason: ScriptedFailure.transient))
        scene.succeed(older, with: .granted("older"))
        scene.succeed(young, with: .granted("young"))
        scene.release(store)
        #expect(caller.value?.value == "young" && store.contents?.value == "young")
        #expect(store.log == ["load", "save salvaged", "save young"])
        #expect(scene.discards == ["salvaged superseded", "older superseded"])
    }

    @Test(arguments: [("salvages", true), ("salvages", false), ("expired", true), ("expired", false), ("barely", false)])
    func `a grant whose token is or will be handed out isn't given up for one without a usable token`(
        young kind: String, isSaving: Bool
    ) throws {
        let store = ScriptedStore()
        let (scene, old, young) = try Self.twoLoads(store)
        if isSaving { store.hold() }
        scene.succeed(old, with: .granted("old"))
        switch kind {
        case "salvages": scene.fail(young, with: SalvagedGrant(.granted("young"), reason: ScriptedFailure.transient))
        case "expired": scene.succeed(young, with: AccessToken("young", lifetime: .zero, refreshToken: "young's grant"))
        default:
            scene.advance(by: .seconds(4))
            scene.succeed(young, with: AccessToken("young", lifetime: .seconds(4.1), refreshToken: "young's grant"))
        }
        if isSaving { scene.release(store) }
        #expect(scene.discards == ["young superseded"])
        #expect(scene.call().value?.value == "old" && store.contents?.value == "old")
        #expect(scene.signOut().value?.discarded.map(\.value) == ["old"])
    }

    @Test func `a younger token good only for those who wait is handed out, and the older one, still unpublished, gives way`()
        throws
    {
        let store = ScriptedStore()
        let (scene, old, young) = try Self.twoLoads(store)
        let waiting = scene.call()
        store.hold()
        scene.succeed(old, with: .granted("old"))
        scene.advance(by: .seconds(4))
        scene.succeed(young, with: AccessToken("young", lifetime: .seconds(4.1), refreshToken: "young's grant"))
        scene.release(store)
        #expect(waiting.value?.value == "young" && scene.discards == ["old superseded"])
        #expect(scene.service.cachedToken == nil && store.contents?.value == "young")
    }

    /// Found by the walk in release builds: the token was handed out for as long as the save of the other one took.
    @Test func `a token whose grant was given up is no longer handed out while the younger one is being saved`() throws {
        let store = ScriptedStore()
        let (scene, old, young) = try Self.twoLoads(store)
        scene.succeed(old, with: .granted("old"))
        #expect(scene.service.cachedToken?.value == "old")
        store.hold()
        scene.succeed(young, with: .granted("young"))
        let caller = scene.call()
        #expect(scene.discards == ["old superseded"] && scene.service.cachedToken == nil && caller.value == nil)
        scene.release(store)
        #expect(caller.value?.value == "young" && store.contents?.value == "young")
    }

    @Test func `a refresh replaces the token it was for: that grant is used up, not given up`() throws {
        let scene = try Scene.holding(.granted("a"))
        for name in ["b", "c"] {
            scene.advance(by: .seconds(3_540))
            _ = scene.call()
            try scene.deliver(.granted(name))
        }
        #expect(scene.discards.isEmpty)
    }

    @Test func `after a younger token that came inside its leeway, the older load's grant is handed over`() throws {
        let (scene, old, young) = try Self.twoLoads(nil)
        let waiting = scene.call()
        scene.advance(by: .seconds(4))
        scene.succeed(young, with: AccessToken("young", lifetime: .seconds(4.1), refreshToken: "young's grant"))
        #expect(waiting.value?.value == "young" && scene.service.cachedToken == nil)
        scene.succeed(old, with: .granted("old"))
        #expect(scene.discards == ["old superseded"] && scene.service.cachedToken == nil)
        _ = scene.call()
        #expect(try scene.load().previous?.value == "young")
    }

    @Test func `4: a younger load that fails after the older one's token was refused is a failure like any other`() throws {
        let (scene, old, young) = try Self.twoLoads(nil)
        scene.succeed(old, with: .granted("old"))
        scene.invalidate(.granted("old"))
        let waiting = scene.call()
        scene.fail(young, with: ScriptedFailure(retryAfter: .seconds(100)))
        #expect(waiting.code == .loadFailed)
        #expect(scene.call().retryAt == 130 && scene.loader.loadCount == 2)
    }

    @Test func `a flight whose save is dropped before it begins has ended`() throws {
        let store = ScriptedStore()
        let (scene, oldest, older) = try Self.twoLoads(store)
        scene.advance(by: .seconds(30))
        scene.retryNow()
        _ = scene.call()
        let young = try scene.load()
        store.hold()
        scene.fail(oldest, with: SalvagedGrant(.granted("salvaged"), reason: ScriptedFailure.transient))
        // Its save waits for that of the salvaged grant, and is superseded by the newer one's.
        scene.succeed(older, with: .granted("older"))
        scene.succeed(young, with: .granted("young"))
        scene.release(store)
        #expect(store.log == ["load", "save salvaged", "save young"] && scene.call().value?.value == "young")
        let rests = scene.stage.start { [service = scene.service] in await service.machine.idleFrom != nil }
        #expect(rests.value == true, "nothing is under way")
    }
}
