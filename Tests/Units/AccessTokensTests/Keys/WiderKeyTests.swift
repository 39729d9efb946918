import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Testing

@Suite("A wider key's token serves a narrower one where the program says so") struct WiderKeyTests {
    /// Keys are scopes, and one of more words includes one of fewer.
    private func tokens(_ scene: KeyScene, _ key: String) -> TokenService {
        scene.services.service(of: key) { Set($0.split(separator: " ")).isSuperset(of: key.split(separator: " ")) }
    }

    @Test func `a key without a token is served by a wider one that has one`() throws {
        let scene = KeyScene()
        try scene.hold(.hour("rw"), for: "read write")
        #expect(tokens(scene, "read") === scene.services["read write"])
        #expect(tokens(scene, "read").cachedToken?.value == "rw" && scene.loadCount("read") == 0)
        #expect(scene.services["read"] !== scene.services["read write"], "the subscript never does so")
    }

    @Test func `a key's own token comes first, and a narrower key's never serves`() throws {
        let scene = KeyScene()
        try scene.hold(.hour("r"), for: "read")
        #expect(tokens(scene, "read write") === scene.services["read write"])
        try scene.hold(.hour("rw"), for: "read write")
        #expect(tokens(scene, "read").cachedToken?.value == "r")
    }

    @Test func `of several wider tokens the one serves that is good for longest`() throws {
        let scene = KeyScene()
        try scene.hold(.hour("a"), for: "read write")
        scene.advance(by: .seconds(60))
        try scene.hold(.hour("b"), for: "read admin")
        #expect(tokens(scene, "read").cachedToken?.value == "b")
        scene.advance(by: .seconds(3_500))
        #expect(tokens(scene, "read").cachedToken?.value == "b")
        scene.advance(by: .seconds(60))
        #expect(tokens(scene, "read") === scene.services["read"], "both have expired")
    }

    @Test func `a token that is refused or signed out serves no longer`() async throws {
        let scene = KeyScene()
        try scene.hold(.hour("rw"), for: "read write")
        let wide = tokens(scene, "read")
        _ = scene.stage.start { await wide.invalidate(.hour("rw")) }
        scene.stage.run()
        #expect(tokens(scene, "read") === scene.services["read"])
    }
}
