import AccessTokensTesting
import Testing

@testable import AccessTokens

/// With the default limit of 30 s a load that was given up is forgotten 120 s after its start.
@Suite("Guarantee 46: a fence forgets given-up loads, and so does time")
struct ForgottenLoadTests {
    @Test(arguments: [true, false], [true, false])
    func `46: however many loads never end, a fence forgets them`(isRepeatable: Bool, byReset: Bool) throws {
        let scene = Scene(isRepeatable: isRepeatable)
        for round in 1...10 {
            _ = scene.call()
            _ = try scene.load()
            scene.advance(by: .seconds(isRepeatable ? 0 : 31))
            if byReset { scene.reset() } else { scene.replace(with: AccessToken("\(round)", lifetime: .zero)) }
        }
        let caller = scene.call()
        try scene.deliver(.hour("b"))
        #expect(caller.value?.value == "b")
    }

    @Test func `46: each load that was given up is forgotten after four times its limit`() throws {
        let scene = Scene(isRepeatable: true)
        // They begin at 0, 30 and 60 s.
        for _ in 1...3 {
            scene.retryNow()
            _ = scene.call()
            _ = try scene.load()
            scene.advance(by: .seconds(30))
        }
        scene.advance(by: .seconds(30) - .milliseconds(1))
        #expect(scene.call().code == .loadTimedOut && scene.loader.loadCount == 3)
        scene.advance(by: .milliseconds(1))
        let caller = scene.call()
        try scene.deliver(.hour("b"))
        #expect(caller.value?.value == "b")
    }

    @Test(arguments: [10, 30, 60])
    func `46: a load that must not be repeated is also forgotten and cancelled, without a fence`(limit: Int) throws {
        let scene = Scene(policy: RefreshPolicy(loadTimeout: .seconds(limit)))
        scene.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r"))
        _ = scene.call()
        let lost = try scene.load()
        scene.advance(by: .seconds(4 * limit) - .milliseconds(1))
        #expect(scene.call().code == .loadTimedOut && !lost.isCancelled && scene.loader.loadCount == 1)
        scene.advance(by: .milliseconds(1))
        let caller = scene.call(), next = try scene.load()
        #expect(lost.isCancelled && next.previous?.refreshToken == "r")
        scene.succeed(next, with: .hour("b"))
        #expect(caller.value?.value == "b")
    }

    @Test func `46: the token of a forgotten load is still used, or its grant is handed over`() throws {
        let scene = Scene()
        _ = scene.call()
        let first = try scene.load()
        scene.advance(by: .seconds(120))
        let waiting = scene.call(), second = try scene.load()
        scene.succeed(first, with: .granted("late"))
        #expect(waiting.value?.value == "late")
        for _ in 1...3 {
            scene.reset()
            _ = scene.call()
            _ = try scene.load()
        }
        scene.succeed(second, with: .granted("later"))
        #expect(scene.discards == ["late signedOut", "later signedOut"])
    }

    @Test func `46: a service keeps no record of a load that a fence has cut off`() throws {
        let scene = Scene()
        for _ in 1...100 {
            _ = scene.call()
            scene.reset()
        }
        let givenUp = scene.stage.start { [service = scene.service] in await service.machine.abandoned.count }
        #expect(givenUp.value == 0)
    }

    @Test func `46: a load that a sign-out cut off is cancelled when it is forgotten, although nothing else happens`() throws {
        let scene = Scene()
        scene.replace(with: AccessToken("", lifetime: .zero, refreshToken: "r"))
        _ = scene.call()
        let lost = try scene.load()
        scene.reset()
        scene.advance(by: .seconds(120) - .milliseconds(1))
        #expect(!lost.isCancelled)
        scene.advance(by: .milliseconds(1))
        #expect(lost.isCancelled)
    }

    @Test func `46: a stalled refresh is forgotten while its token is good, and the next caller starts another without waiting`()
        throws
    {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(2_730))
        _ = scene.call()
        _ = try scene.load()
        scene.advance(by: .seconds(30))
        scene.advance(by: .seconds(90) - .milliseconds(1))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 2)
        scene.advance(by: .milliseconds(1))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 3)
        try scene.deliver(.hour("b"))
        #expect(scene.call().value?.value == "b")
    }
}
