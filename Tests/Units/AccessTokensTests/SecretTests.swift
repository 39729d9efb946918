import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantee 18: secrets stay secret")
struct SecretTests {
    private static let token = AccessToken(
        "SECRET-access", lifetime: .seconds(3600), scope: "read", refreshToken: "SECRET-refresh")

    private func texts(of value: Any) -> [String] {
        var dumped = ""
        dump(value, to: &dumped)
        return ["\(value)", String(describing: value), String(reflecting: value), dumped]
    }

    @Test func `no text made of a token shows the token, alone or inside something else`() {
        let values: [Any] = [Self.token, [Self.token], Optional(Self.token) as Any, ["key": Self.token], Set([Self.token])]
        for text in values.flatMap(texts) {
            #expect(!text.contains("SECRET"))
        }
        #expect("\(Self.token)" == "AccessToken(Bearer token, lifetime 3600.0 seconds, 1 scope, with a refresh token)")
    }

    // A server may write anything into both, even a secret other than the token's own.
    @Test(arguments: ["SECRET-access", "SECRET-refresh", "\u{1B}[2J\u{1B}[31mSECRET", "SECRET\r\n2026 forged", "%53ECRET-access"])
    func `18: no text of a token shows what a server wrote into its scope or its type`(written: String) {
        let token = AccessToken("SECRET-access", tokenType: written, scope: "read \(written)", refreshToken: "SECRET-refresh")
        for text in texts(of: token) + texts(of: [token]) {
            #expect(!text.contains("ECRET") && !text.contains("forged") && !text.contains("\u{1B}") && !text.contains("read"))
        }
    }

    @Test func `no dump of a service in any state shows a token`() throws {
        let scene = try Scene.holding(Self.token)
        var dumps = texts(of: scene.service) + texts(of: scene.loader)
        scene.invalidate(Self.token)
        dumps += texts(of: scene.service)
        _ = scene.call()
        dumps += texts(of: scene.service) + texts(of: try scene.load())
        for text in dumps { #expect(!text.contains("SECRET")) }
    }

    @Test func `no event and no error shows a token`() throws {
        let scene = Scene()
        let events = scene.service.events()
        let caller = scene.call()
        try scene.deliver(Self.token)
        scene.invalidate(Self.token)
        let refused = scene.call()
        try scene.deliver(Self.token)
        scene.replace(with: Self.token)
        scene.reset()
        #expect(caller.isDone)
        let seen = scene.stage.start {
            var seen: [TokenEvent] = []
            for await event in events {
                seen.append(event)
                if event.name == .reset { break }
            }
            return seen
        }
        let all = try #require(seen.value)
        #expect(all.count == 7)
        for text in all.flatMap(texts) + texts(of: refused.error as Any) { #expect(!text.contains("SECRET")) }
    }
}
