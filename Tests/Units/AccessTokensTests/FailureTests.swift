import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 4: failures are not cached as answers")
struct FailureTests {
    @Test func `all waiting callers share the error, and the next caller starts a load at once`() throws {
        let scene = Scene()
        let waiting = scene.calls(5)
        scene.fail(try scene.load())
        #expect(waiting.allSatisfy { $0.code == .loadFailed })
        #expect(waiting.allSatisfy { ($0.error as? TokenServiceError)?.underlying is ScriptedFailure })
        let next = scene.call()
        try scene.deliver(.hour("a"))
        #expect(next.value?.value == "a")
    }

    // Museum 5: a failed load served for ever (soto-core#708). Museum 22: arithmetic that overflows at failure 58
    // (aws-sdk-java-v2#6805).
    @Test func `the pauses double to a minute and never overflow, over 100 failures`() throws {
        let scene = Scene()
        var pauses: [Double] = []
        for _ in 1...100 {
            let caller = scene.call()
            scene.fail(try scene.load())
            let now = scene.clock.now.offset / .seconds(1)
            let pause = try #require(caller.retryAt) - now
            pauses.append(pause)
            if pause > 0.002 {
                scene.advance(by: .seconds(pause - 0.001))
                let early = scene.call()
                #expect(early.code == .loadFailed && early.retryAt != nil, "the last error, without a load")
            }
            scene.advance(by: .milliseconds(2))
        }
        #expect(pauses[0] == 0)
        for (pause, floor) in zip(pauses.dropFirst(), [1.0, 2, 4, 8, 16, 32, 60, 60]) {
            #expect(pause >= floor && pause <= floor * 1.25)
        }
        #expect(pauses.dropFirst(7).allSatisfy { 60 <= $0 && $0 <= 75 })
    }

    @Test(arguments: [(5, 5), (3_600, 3_600), (100_000, 3_600), (0, 0), (-5, 0)])
    func `the server's Retry-After wins, up to an hour, also after a first failure`(seconds: Int, honoured: Int) throws {
        let scene = Scene()
        let caller = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure(retryAfter: .seconds(seconds)))
        #expect(caller.retryAt == Double(honoured))
        if honoured > 0 {
            scene.advance(by: .seconds(honoured) - .milliseconds(1))
            #expect(scene.call().code == .loadFailed)
            #expect(scene.loader.loadCount == 1)
            scene.advance(by: .milliseconds(1))
        }
        _ = scene.call()
        #expect(scene.loader.loadCount == 2)
    }

    @Test(arguments: ["replace", "reset", "retryNow"])
    func `after a refused grant the server is asked no more`(until cure: String) throws {
        let scene = Scene()
        let caller = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure.grantRefused)
        #expect(caller.retryAt == nil)
        #expect((caller.error as? TokenServiceError)?.remedy == .signIn)
        scene.advance(by: .seconds(1_000_000))
        #expect(scene.call().code == .loadFailed)
        #expect(scene.loader.loadCount == 1)
        switch cure {
        case "replace": scene.replace(with: AccessToken("grant", lifetime: .zero))
        case "reset": scene.reset()
        default: scene.retryNow()
        }
        _ = scene.call()
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `a refused client is tried again after the longest pause, and can recover`() throws {
        let scene = Scene()
        let caller = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure.clientRefused)
        #expect(caller.retryAt == 60)
        #expect(String(describing: try #require(caller.error)).contains("Next attempt: 1970-01-01 00:01:00"))
        scene.advance(by: .seconds(59))
        #expect(scene.call().code == .loadFailed)
        scene.advance(by: .seconds(1))
        let healed = scene.call()
        try scene.deliver(.hour("a"))
        #expect(healed.value?.value == "a")
    }

    @Test func `a success resets the failure count, so the next failure counts as the first`() throws {
        let scene = Scene()
        for _ in 1...4 {
            _ = scene.call()
            scene.fail(try scene.load())
            scene.advance(by: .seconds(10))
        }
        _ = scene.call()
        let token = try scene.deliver(.hour("a"))
        scene.invalidate(token)
        let caller = scene.call()
        scene.fail(try scene.load())
        #expect(caller.retryAt == scene.clock.now.offset / .seconds(1))
    }

    @Test(arguments: [Duration.zero, .seconds(-1)])
    func `a token that arrives already expired is a transient failure`(lifetime: Duration) throws {
        let scene = Scene()
        let caller = scene.call()
        try scene.deliver(AccessToken("a", lifetime: lifetime))
        #expect(caller.code == .tokenExpiredOnArrival && caller.retryAt == 0)
        #expect(String(describing: try #require(caller.error)).hasSuffix(" The next call tries again."))
        let next = scene.call()
        try scene.deliver(.hour("b"))
        #expect(next.value?.value == "b")
    }

    @Test func `a token that arrives inside its leeway answers its waiters and is not cached`() throws {
        let scene = Scene()
        let waiting = scene.calls(2)
        let load = try scene.load()
        scene.advance(by: .seconds(9.5))
        scene.succeed(load, with: AccessToken("a", lifetime: .seconds(10)))
        #expect(waiting.allSatisfy { $0.value?.value == "a" })
        #expect(scene.service.cachedToken == nil)
        _ = scene.call()
        #expect(scene.loader.loadCount == 2)
    }

    // Museum 29: a transport error taken for a sign-out (OAuthenticator; tuist PR#10276).
    @Test func `a transport error keeps the grant`() throws {
        let scene = try Scene.holding(AccessToken("a", lifetime: .seconds(60), refreshToken: "r"))
        scene.advance(by: .seconds(60))
        _ = scene.call()
        scene.fail(try scene.load())
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "r")
    }

    @Test func `a loader's CancellationError is a failed load, not the caller's cancellation`() throws {
        let scene = Scene()
        let caller = scene.call()
        scene.fail(try scene.load(), with: CancellationError())
        #expect(caller.code == .loadFailed)
    }

    // Museum 29: an unknown error isn't a reason to ask for a sign-in.
    @Test func `an error without a remedy counts as transient`() throws {
        struct Unknown: Error {}
        let scene = Scene()
        let caller = scene.call()
        scene.fail(try scene.load(), with: Unknown())
        #expect((caller.error as? TokenServiceError)?.remedy == .retry)
        _ = scene.call()
        #expect(scene.loader.loadCount == 2)
    }

    @Test(arguments: [0, -5])
    func `a Retry-After of zero or less doesn't end the service's own pause`(seconds: Int) throws {
        let scene = Scene()
        var callers: [Scene.Caller] = []
        for _ in 1...2 {
            callers.append(scene.call())
            scene.fail(try scene.load(), with: ScriptedFailure(retryAfter: .seconds(seconds)))
        }
        #expect(try #require(callers[1].retryAt) >= 1)
    }

    @Test func `an error's retryAt isn't in the past, even if the clock advances before the caller gets it`() throws {
        let stage = Stage(), manual = ManualClock(), start = manual.now, meanwhile = Meanwhile()
        let service = TokenService(
            environment: .driven(
                by: stage, clock: OddClock(manual, onReading: meanwhile.read),
                wallClock: { Date(timeIntervalSince1970: start.duration(to: manual.now) / .seconds(1)) })
        ) { _ in throw ScriptedFailure.transient }
        for _ in 1...2 { _ = stage.start { try await service.retrieveToken() } }
        // The first clock reading asks the lobby, the second decides and the third dates the error, before which the pause ends.
        meanwhile.atReading(3) { manual.advance(by: .seconds(10)) }
        let caller = stage.start { try await service.retrieveToken() }
        #expect(caller.code == .loadFailed && caller.retryAt == 10)
    }

    @Test func `a load that brings a new refresh token but no valid access token causes the longest pause`() throws {
        let scene = Scene()
        let caller = scene.call()
        try scene.deliver(AccessToken("a", lifetime: .zero, refreshToken: "rotated"))
        #expect(caller.code == .tokenExpiredOnArrival && caller.retryAt == RefreshPolicy.longestPause / .seconds(1))
        scene.advance(by: RefreshPolicy.longestPause - .milliseconds(1))
        #expect(scene.call().code == .tokenExpiredOnArrival)
        scene.advance(by: .milliseconds(1))
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "rotated", "its refresh token is not lost (museum 19)")
    }
}
