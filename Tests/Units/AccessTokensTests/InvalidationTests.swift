import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantee 5: compare, then drop")
struct InvalidationTests {
    @Test func `the refused current token is dropped, and the next caller loads with it as previous`() throws {
        let scene = try Scene.holding(AccessToken("a", lifetime: .seconds(3600), refreshToken: "r"))
        scene.invalidate(AccessToken("a"))
        #expect(scene.service.cachedToken == nil)
        let caller = scene.call()
        let load = try scene.load()
        #expect(load.previous?.refreshToken == "r", "the grant outlives the token")
        scene.succeed(load, with: .hour("b"))
        #expect(caller.value?.value == "b")
    }

    // Museum 10: a late 401 for the old token throws the fresh one away (KTOR-5681; p2/OAuth2).
    @Test func `a late refusal of an older token leaves the fresh one alone`() throws {
        let scene = try Scene.holding(.hour("old"))
        scene.invalidate(.hour("old"))
        _ = scene.call()
        try scene.deliver(.hour("fresh"))
        scene.invalidate(.hour("old"))
        #expect(scene.call().value?.value == "fresh")
        #expect(scene.loader.loadCount == 2)
    }

    // Museum 11: N concurrent 401s start N refreshes; with rotation the session dies (OAuthenticator: 20 → 20).
    @Test(arguments: [2, 20, 200])
    func `any number of refusals of one token make one load`(callers: Int) throws {
        let scene = try Scene.holding(.hour("a"))
        let waiting = (0..<callers).map { _ in
            scene.stage.start { [service = scene.service] in
                await service.invalidate(.hour("a"))
                return try await service.retrieveToken()
            }
        }
        try scene.deliver(.hour("b"))
        #expect(waiting.allSatisfy { $0.value?.value == "b" })
        #expect(scene.loader.loadCount == 2)
    }

    // Museum 12: the server hands out the rejected token again, for ever (home-assistant/iOS PR#5317; okhttp#960).
    @Test func `a server that returns the refused token again gets a paced retry, and callers a clear error`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.invalidate(.hour("a"))
        for attempt in 1...2 {
            let caller = scene.call()
            try scene.deliver(.hour("a"))
            #expect(caller.code == .tokenRejectedBefore)
            #expect(scene.loader.loadCount == 1 + attempt)
        }
        #expect(scene.call().code == .tokenRejectedBefore, "the second failure starts a pause")
        #expect(scene.loader.loadCount == 3)
    }

    @Test func `refusals cause at most 5 loads in 30 s, and the last token stays in use until another may start`() throws {
        let scene = try Scene.holding(.hour("0"))
        for number in 1...5 {
            scene.advance(by: .seconds(1))
            scene.invalidate(.hour("\(number - 1)"))
            _ = scene.call()
            try scene.deliver(.hour("\(number)"))
        }
        scene.invalidate(.hour("5"))
        #expect(scene.call().value?.value == "5")
        scene.advance(by: .milliseconds(25_999))
        #expect(scene.call().value?.value == "5" && scene.loader.loadCount == 6)
        scene.advance(by: .milliseconds(1))
        let healed = scene.call()
        try scene.deliver(.hour("6"))
        #expect(healed.value?.value == "6")
    }

    @Test func `a server that keeps returning the refused token meets the same limit`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.invalidate(.hour("a"))
        var codes: [TokenServiceError.Code?] = []
        for second in 0...25 {
            let caller = scene.call()
            if !caller.isDone { try scene.deliver(.hour("a")) }
            if second == 25 { codes.append(caller.code) }
            scene.advance(by: .seconds(1))
        }
        #expect(codes == [.tooManyInvalidations])
        #expect(scene.loader.loadCount == 6)
    }

    @Test func `a refusal that joins a running refresh starts no load, and does not count`() throws {
        let scene = try Scene.holding(.hour("0"))
        scene.advance(by: .seconds(3000))
        _ = scene.call()
        scene.invalidate(.hour("0"))
        try scene.deliver(AccessToken("short", lifetime: .seconds(1)))
        scene.advance(by: .seconds(1))
        _ = scene.call()
        try scene.deliver(.hour("1"))
        for number in 1...5 {
            scene.invalidate(.hour("\(number)"))
            let caller = scene.call()
            try scene.deliver(.hour("\(number + 1)"))
            #expect(caller.value != nil)
        }
    }

    @Test func `the last eight refused tokens are remembered`() throws {
        let scene = Scene()
        for number in 0...8 { scene.invalidate(.hour("\(number)")) }
        let caller = scene.call()
        try scene.deliver(.hour("1"))
        #expect(caller.code == .tokenRejectedBefore)
        let other = scene.call()
        try scene.deliver(.hour("0"))
        #expect(other.value?.value == "0", "the ninth pushed it out")
    }

    @Test func `a refused token is remembered until it has expired`() throws {
        let scene = Scene()
        scene.invalidate(AccessToken("a", lifetime: .seconds(100)))
        scene.advance(by: .seconds(100))
        let caller = scene.call()
        try scene.deliver(.hour("a"))
        #expect(caller.value?.value == "a")
    }

    // Museum 13: a forced refresh joins the older, ordinary flight (okta-mobile-swift; MeetingBar PR#974): it may join a refresh
    // of the same token, but the refused token must not be handed out, whatever that refresh returns.
    @Test func `an invalidation during a refresh of that token joins the refresh`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3000))
        #expect(scene.call().value?.value == "a")
        let refresh = try scene.load()
        scene.invalidate(.hour("a"))
        let waiting = scene.calls(3)
        scene.succeed(refresh, with: .hour("b"))
        #expect(waiting.allSatisfy { $0.value?.value == "b" })
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `a refresh that was joined and returns the refused token is a failure`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3000))
        _ = scene.call()
        let refresh = try scene.load()
        scene.invalidate(.hour("a"))
        let caller = scene.call()
        scene.succeed(refresh, with: .hour("a"))
        #expect(caller.code == .tokenRejectedBefore)
        #expect(scene.service.cachedToken == nil)
    }

    // Museum 24: invalidating during a refresh stores the stale value (caffeine#193); a completed refresh is discarded
    // (caffeine#1970).
    @Test func `a refusal of an older token during a load discards nothing`() throws {
        let scene = Scene()
        let caller = scene.call()
        scene.invalidate(.hour("older"))
        try scene.deliver(.hour("a"))
        #expect(caller.value?.value == "a")
        #expect(scene.service.cachedToken?.value == "a")
    }

    @Test func `a refusal of an older token makes the late success of a load that was given up no less welcome`() throws {
        let scene = Scene(isRepeatable: true)
        _ = scene.call()
        let late = try scene.load()
        scene.advance(by: .seconds(30))
        let waiting = scene.call()
        scene.invalidate(.hour("older"))
        scene.succeed(late, with: .hour("a"))
        #expect(waiting.value?.value == "a")
    }

    @Test func `refusing one token again and again pushes no other out`() throws {
        let scene = Scene()
        scene.invalidate(.hour("first"))
        for _ in 1...8 { scene.invalidate(.hour("again")) }
        let caller = scene.call()
        try scene.deliver(.hour("first"))
        #expect(caller.code == .tokenRejectedBefore)
    }

    @Test func `refused tokens that have expired take no other's place`() throws {
        let scene = Scene()
        scene.invalidate(.hour("first"))
        scene.invalidate(AccessToken("short", lifetime: .seconds(1)))
        for number in 1...6 { scene.invalidate(.hour("\(number)")) }
        scene.advance(by: .seconds(1))
        scene.invalidate(.hour("ninth"))
        let caller = scene.call()
        try scene.deliver(.hour("first"))
        #expect(caller.code == .tokenRejectedBefore)
    }

    @Test func `the limit on loads after refusals stops no other load, and counts none`() throws {
        let scene = try Scene.holding(.hour("0"))
        func expire(_ name: String) throws {
            scene.advance(by: .seconds(1))
            let caller = scene.call()
            try scene.deliver(AccessToken(name, lifetime: .seconds(1)))
            #expect(caller.value?.value == name)
        }
        for number in 1...5 {
            scene.invalidate(AccessToken("\(number - 1)"))
            let caller = scene.call()
            try scene.deliver(AccessToken("\(number)", lifetime: .seconds(1)))
            #expect(caller.value != nil, "number \(number)")
            try expire("\(number)")
        }
        try expire("after five")
    }
}
