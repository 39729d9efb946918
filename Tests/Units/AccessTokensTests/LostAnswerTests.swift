import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Refused grants whose last use had no answer")
struct LostAnswerTests {
    private static let lost = Date(timeIntervalSince1970: 100)

    /// Lets a load fail 100 s after the scene's start.
    private func lose(_ scene: Scene, with error: any Error = ScriptedFailure.transient) throws {
        scene.advance(by: .seconds(100))
        _ = scene.call()
        scene.fail(try scene.load(), with: error)
    }

    private func refuse(_ scene: Scene, with error: ScriptedFailure = .grantRefused) throws -> TokenServiceError? {
        scene.advance(by: .seconds(60))
        let caller = scene.call()
        scene.fail(try scene.load(), with: error)
        return caller.error as? TokenServiceError
    }

    @Test func `a refusal says when the answer was lost, in its text, its event and each later call's error`() throws {
        let scene = Scene(), events = scene.service.events()
        try lose(scene)
        let error = try refuse(scene)
        #expect(error?.remedy == .signIn && error?.lostAnswerAt == Self.lost)
        let sentence =
            "The response to an earlier attempt was lost at \(Self.lost), so the server may have replaced the refresh token then."
        #expect(error?.description.contains(sentence) == true, "\(error as Any)")
        scene.advance(by: .seconds(3_600))
        #expect((scene.call().error as? TokenServiceError)?.lostAnswerAt == Self.lost)
        let told = scene.told(by: events).filter { $0.name == .loadFailed }
        #expect(told.map { $0.error?.lostAnswerAt } == [nil, Self.lost])
        #expect(told.last?.description.hasSuffix("remedy=signIn lostAnswer=1970-01-01T00:01:40Z") == true, "\(told)")
    }

    @Test func `an unclear refusal and a refused refresh ahead also say when the answer was lost`() throws {
        let scene = Scene()
        try lose(scene)
        #expect(try refuse(scene, with: ScriptedFailure(.signInOrRegistration))?.lostAnswerAt == Self.lost)
        let ahead = try Scene.holding(.hour("a")), events = ahead.service.events()
        ahead.advance(by: .seconds(3_000))
        for failure in [ScriptedFailure.transient, .grantRefused] {
            _ = ahead.call()
            ahead.fail(try ahead.load(), with: failure)
            ahead.advance(by: .seconds(100))
        }
        let told = ahead.told(by: events).filter { $0.name == .refreshFailed }
        #expect(told.map { $0.error?.lostAnswerAt } == [nil, Date(timeIntervalSince1970: 3_000)])
    }

    @Test func `a refusal names the first lost answer since the last success, even after retryNow`() throws {
        let scene = Scene()
        try lose(scene)
        for _ in 1...3 {
            scene.retryNow()
            _ = scene.call()
            scene.fail(try scene.load())
            scene.advance(by: .seconds(1))
        }
        scene.retryNow()
        #expect(try refuse(scene)?.lostAnswerAt == Self.lost)
    }

    @Test func `a timed-out load counts as a lost answer, unless its late answer is the refusal`() throws {
        for isLate in [true, false] {
            let scene = Scene(), events = scene.service.events()
            let caller = scene.call()
            let call = try scene.load()
            scene.advance(by: .seconds(30))
            #expect(caller.code == .loadTimedOut)
            scene.advance(by: .seconds(5))
            scene.fail(call, with: isLate ? ScriptedFailure.grantRefused : .transient)
            let last = isLate ? scene.told(by: events).last?.error : try refuse(scene)
            #expect(last?.remedy == .signIn)
            #expect(last?.lostAnswerAt == (isLate ? nil : Date(timeIntervalSince1970: 30)))
        }
    }

    @Test(arguments: ["success", "reset", "replace", "salvage", "answered", "refused", "repeatable"])
    func `a refusal names no lost answer if none was lost with the same grant`(between: String) throws {
        let scene = Scene(isRepeatable: between == "repeatable")
        switch between {
        case "answered": try lose(scene, with: ScriptedFailure(.retry, retryAfter: .seconds(1)))
        case "refused": try lose(scene, with: ScriptedFailure.clientRefused)
        default: try lose(scene)
        }
        switch between {
        case "success":
            _ = scene.call()
            scene.invalidate(try scene.deliver(.hour("a")))
        case "reset": scene.reset()
        case "replace":
            scene.replace(with: AccessToken("grant", lifetime: .zero))
            scene.fail(try scene.load(), with: ScriptedFailure.clientRefused)
        case "salvage":
            _ = scene.call()
            let grant = AccessToken("", lifetime: .zero, refreshToken: "r2")
            scene.fail(try scene.load(), with: SalvagedGrant(grant, reason: ScriptedFailure.clientRefused))
        default: break
        }
        let error = try refuse(scene)
        #expect(error?.remedy == .signIn && error?.lostAnswerAt == nil, "\(error as Any)")
    }
}
