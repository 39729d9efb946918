import AccessTokens
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Refusals that do not say whether they mean the grant or the client")
struct UnclearRefusalTests {
    private static let unclear = ScriptedFailure(.signInOrRegistration, message: "bare 400")

    private func refuse(_ scene: Scene, after pause: Duration = .seconds(300)) throws -> TokenServiceError? {
        scene.advance(by: pause)
        let caller = scene.call()
        scene.fail(try scene.load(), with: Self.unclear)
        return caller.error as? TokenServiceError
    }

    @Test func `the third unclear refusal in ten minutes counts as a refused grant, and the server is asked no more`()
        throws
    {
        let scene = Scene()
        for _ in 1...2 {
            let error = try refuse(scene)
            #expect(error?.remedy == .signInOrRegistration && error?.retryAt != nil)
            #expect(error?.description.contains("without saying which") == true)
        }
        let third = try refuse(scene)
        #expect(third?.remedy == .signIn && third?.retryAt == nil && third?.underlying as? ScriptedFailure == Self.unclear)
        #expect(third?.description.contains("pass the new token to replace(with:)") == true)
        scene.advance(by: .seconds(1_000_000))
        #expect((scene.call().error as? TokenServiceError)?.remedy == .signIn && scene.loader.loadCount == 3)
    }

    // A server's bad minute, or ten processes that are refused in the same second.
    @Test(arguments: [0, 1, 60, 299])
    func `53: any number of unclear refusals within ten minutes ends no session`(seconds: Int) throws {
        let scene = Scene()
        for number in 0...20 {
            scene.retryNow()
            let error = try refuse(scene, after: number == 0 ? .zero : .seconds(seconds))
            guard number < 2 || number * seconds < 600 else { return #expect(error?.remedy == .signIn) }
            #expect(error?.remedy == .signInOrRegistration, "\(number)")
        }
    }

    @Test func `the ten minutes begin with the first unclear refusal since a success`() throws {
        let scene = Scene()
        _ = try refuse(scene, after: .zero)
        _ = try refuse(scene, after: .seconds(3_600))
        _ = scene.call()
        scene.advance(by: .seconds(60))
        _ = scene.call()
        scene.invalidate(try scene.deliver(.hour("a")))
        for pause in [Duration.zero, .seconds(60), .seconds(60), .seconds(479)] {
            #expect(try refuse(scene, after: pause)?.remedy == .signInOrRegistration)
        }
        #expect(try refuse(scene, after: .seconds(60))?.remedy == .signIn)
    }

    @Test func `each unclear refusal is followed by the longest pause`() throws {
        let scene = Scene()
        for _ in 1...2 {
            _ = try refuse(scene)
            scene.advance(by: .seconds(59))
            _ = scene.call()
        }
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `unclear refusals in the soft window keep the good token, and after the third no refresh starts`() throws {
        let policy = RefreshPolicy(maximumRefreshWindow: .seconds(9_000))
        let scene = try Scene.holding(AccessToken("a", lifetime: .seconds(36_000)), policy: policy)
        let events = scene.service.events()
        scene.advance(by: .seconds(28_000))
        for _ in 1...3 {
            _ = scene.call()
            scene.fail(try scene.load(), with: Self.unclear)
            scene.advance(by: .seconds(375))
        }
        scene.advance(by: .seconds(1_000))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 4)
        let failures = scene.told(by: events).filter { $0.name == .refreshFailed }
        #expect(failures.map { $0.error?.remedy } == [.signInOrRegistration, .signInOrRegistration, .signIn])
    }

    @Test func `a refused grant in the soft window is refused for good, whatever pause the server asks for`() throws {
        let scene = try Scene.holding(.hour("a")), events = scene.service.events()
        scene.advance(by: .seconds(3_000))
        _ = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure(.signIn, retryAfter: .seconds(10)))
        scene.advance(by: .seconds(500))
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 2)
        #expect(scene.told(by: events).last?.error?.retryAt == nil)
    }

    @Test(arguments: ["success", "reset", "replace"])
    func `a success or a fence resets the count of unclear refusals`(cure: String) throws {
        let scene = Scene()
        for _ in 1...2 { _ = try refuse(scene) }
        switch cure {
        case "success":
            scene.advance(by: .seconds(60))
            _ = scene.call()
            scene.invalidate(try scene.deliver(.hour("a")))
        case "reset": scene.reset()
        default: scene.replace(with: AccessToken("grant", lifetime: .zero))
        }
        if cure == "replace" {
            scene.fail(try scene.load(), with: Self.unclear)
        } else {
            #expect(try refuse(scene)?.remedy == .signInOrRegistration)
        }
        #expect(try refuse(scene)?.remedy == .signInOrRegistration)
        #expect(try refuse(scene)?.remedy == .signIn)
    }

    @Test func `a user who taps "try again" each time still learns that the session has ended`() throws {
        let scene = Scene()
        for number in 1...3 {
            scene.retryNow()
            #expect(try refuse(scene)?.remedy == (number < 3 ? .signInOrRegistration : .signIn))
        }
        scene.retryNow()
        #expect(try refuse(scene, after: .zero)?.remedy == .signIn, "asked again because of the tap, and as dead as before")
    }

    @Test func `failures of another kind between unclear refusals neither count nor reset the count`() throws {
        let scene = Scene()
        for number in 1...3 {
            scene.advance(by: .seconds(200))
            _ = scene.call()
            scene.fail(try scene.load())
            #expect(try refuse(scene, after: .seconds(200))?.remedy == (number < 3 ? .signInOrRegistration : .signIn))
        }
    }
}
