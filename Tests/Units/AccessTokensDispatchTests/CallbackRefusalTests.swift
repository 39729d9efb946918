import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 43, with completion handlers: a refused request keeps its user")
struct CallbackRefusalTests {
    private static func retry(_ scene: ShimScene, _ name: String, _ refused: String) {
        scene.shim.retrieveToken(insteadOf: .hour(refused)) { [log = scene.log] in log.append("\(name) \(ShimScene.text($0))") }
    }

    @Test func `43: refused handlers and callers of one session share a load, in the order of the calls`() throws {
        let scene = try ShimScene.holding("a")
        Self.retry(scene, "1", "a")
        scene.call("2")
        Self.retry(scene, "3", "a")
        scene.run()
        try scene.deliver("b")
        #expect(scene.log.entries == ["1 b", "2 b", "3 b"])
        Self.retry(scene, "late", "a")
        scene.run()
        #expect(scene.log.entries.last == "late b" && scene.loader.loadCount == 2)
    }

    @Test func `43: a handler refused for an earlier user gets the reset error, and the next user keeps the token`() throws {
        let scene = try ShimScene.holding("anna")
        scene.shim.reset()
        scene.shim.replace(with: .hour("ben"))
        Self.retry(scene, "anna's", "anna")
        scene.call("ben's")
        scene.run()
        #expect(scene.log.entries == ["anna's reset", "ben's ben"])
        #expect(scene.loader.loadCount == 1)
    }

    @Test func `43: a reset ends a refused handler's wait`() throws {
        let scene = try ShimScene.holding("anna")
        Self.retry(scene, "anna's", "anna")
        scene.shim.reset()
        scene.run()
        #expect(scene.log.entries == ["anna's reset"])
    }

    @Test func `49: a refused handler gets the token once more while the limit is on, and then the error`() throws {
        let scene = try ShimScene.holding("0")
        for number in 1...5 {
            Self.retry(scene, "\(number)", "\(number - 1)")
            scene.run()
            try scene.deliver("\(number)")
        }
        let kept = Lock<AccessToken?>(nil), code = Lock<TokenServiceError.Code?>(nil)
        scene.shim.retrieveToken(insteadOf: .hour("5")) { result in kept.withLock { $0 = try? result.get() } }
        scene.run()
        let given = kept.withLock { $0 }, second = try #require(given)
        scene.shim.retrieveToken(insteadOf: second) { result in
            if case .failure(let error) = result { code.withLock { $0 = (error as? TokenServiceError)?.code } }
        }
        scene.call("other")
        scene.run()
        let told = code.withLock { $0 }
        #expect(second.value == "5" && told == .tooManyInvalidations)
        #expect(scene.log.entries.last == "other 5" && scene.loader.loadCount == 6)
    }
}
