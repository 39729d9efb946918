import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

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

    @Test func `49: while the limit is on, a refused token is handed out once more, and a second refusal is an error`() throws {
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

    @Test func `49: a load that is needed because the refused token ends does start, and doesn't count`() throws {
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

    @Test func `49: the caller of a refused token waits for a refresh that is under way, although the limit is on`() throws {
        let scene = try Self.limited(last: AccessToken("5", lifetime: .seconds(10)))
        scene.advance(by: .seconds(8))
        #expect(scene.call().value?.value == "5")
        let caller = Self.retry(scene, .hour("5"))
        try scene.deliver(.hour("6"))
        #expect(caller.value?.value == "6")
    }

    @Test func `49: a fence that installs a token ends the limit`() throws {
        let scene = try Self.limited()
        let second = try #require(Self.retry(scene, .hour("5")).value)
        scene.replace(with: .hour("given"))
        #expect(Self.retry(scene, second).value?.value == "given")
        let caller = Self.retry(scene, .hour("given"))
        try scene.deliver(.hour("next"))
        #expect(caller.value?.value == "next")
    }

    @Test func `49: the first refusal under the limit sends an event with the time at which the limit ends`() throws {
        let scene = try Self.limited(), events = scene.service.events()
        for _ in 1...3 { scene.invalidate(.hour("5")) }
        let told = scene.told(by: events)
        #expect(told.map(\.name) == [.invalidated])
        #expect(told.first?.error?.code == .tooManyInvalidations && told.first?.error?.retryAt?.timeIntervalSince1970 == 31)
    }
}
