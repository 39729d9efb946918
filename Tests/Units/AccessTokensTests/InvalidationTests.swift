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

    // Museum 12: the server hands out the rejected token again, for ever (home-assistant/iOS PR#5317; okhttp#960). Clouds keep a
    // workload's token until it expires, so that one mistaken refusal would otherwise stop it for a day.
    @Test(arguments: [3600, nil])
    func `5: a token that a load brings again after its refusal is used again`(lifetime: Int?) throws {
        let token = AccessToken("a", lifetime: lifetime.map { .seconds($0) }), scene = try Scene.holding(token)
        scene.invalidate(token)
        let waiting = scene.calls(3)
        try scene.deliver(token)
        #expect(waiting.allSatisfy { $0.value?.value == "a" } && scene.service.cachedToken?.value == "a")
        #expect(scene.call().value?.value == "a" && scene.loader.loadCount == 2)
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

    @Test func `the limit also holds if the server keeps returning the refused token, and no call fails`() throws {
        let scene = try Scene.holding(.hour("a"))
        for _ in 0...25 {
            scene.invalidate(.hour("a"))
            let caller = scene.call()
            if !caller.isDone { try scene.deliver(.hour("a")) }
            #expect(caller.value?.value == "a")
            scene.advance(by: .seconds(1))
        }
        #expect(scene.loader.loadCount == 6)
    }

    @Test func `a refusal that joins a running refresh starts no load and doesn't count against the limit`() throws {
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

    @Test(arguments: [(0, 1), (1, 2)])
    func `the last eight tokens that were refused during a load are remembered`(brought: Int, loads: Int) throws {
        let scene = Scene(), caller = scene.call()
        for number in 0...8 { scene.invalidate(.hour("\(number)")) }
        try scene.deliver(.hour("\(brought)"))
        #expect(scene.loader.loadCount == loads && caller.isDone == (loads == 1), "the ninth pushed out the first")
    }

    @Test func `a refused token is remembered until it has expired`() throws {
        let scene = Scene(policy: RefreshPolicy(loadTimeout: .seconds(200))), caller = scene.call()
        scene.invalidate(AccessToken("a", lifetime: .seconds(100)))
        scene.advance(by: .seconds(100))
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

    @Test func `a joined refresh that returns the refused token is followed by another load`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3000))
        _ = scene.call()
        let refresh = try scene.load()
        scene.invalidate(.hour("a"))
        let caller = scene.call()
        scene.succeed(refresh, with: .hour("a"))
        #expect(!caller.isDone && scene.service.cachedToken == nil)
        try scene.deliver(.hour("b"))
        #expect(caller.value?.value == "b" && scene.loader.loadCount == 3)
    }

    @Test func `49: while the limit is on, a refresh that returns the refused token leaves that token in use`() throws {
        let scene = try Scene.holding(.hour("0"))
        for number in 1...5 {
            scene.invalidate(.hour("\(number - 1)"))
            _ = scene.call()
            try scene.deliver(number == 5 ? AccessToken("5", lifetime: .seconds(20)) : .hour("\(number)"))
        }
        scene.advance(by: .seconds(17))
        _ = scene.call()
        let refresh = try scene.load()
        scene.invalidate(.hour("5"))
        let retry = scene.stage.start { [service = scene.service] in try await service.retrieveToken(insteadOf: .hour("5")) }
        scene.succeed(refresh, with: .hour("5"))
        let second = try #require(retry.value)
        #expect(scene.call().value?.value == "5" && scene.loader.loadCount == 7)
        let told = scene.stage.start { [service = scene.service] in try await service.retrieveToken(insteadOf: second) }
        #expect(told.code == .tooManyInvalidations && told.retryAt == 30)
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

    @Test func `a refusal of an older token doesn't keep a given-up load's late success from being used`() throws {
        let scene = Scene(isRepeatable: true)
        _ = scene.call()
        let late = try scene.load()
        scene.advance(by: .seconds(30))
        let waiting = scene.call()
        scene.invalidate(.hour("older"))
        scene.succeed(late, with: .hour("a"))
        #expect(waiting.value?.value == "a")
    }

    @Test func `repeated refusals of one token don't push out another remembered token`() throws {
        let scene = Scene(), caller = scene.call()
        scene.invalidate(.hour("first"))
        for _ in 1...8 { scene.invalidate(.hour("again")) }
        try scene.deliver(.hour("first"))
        #expect(!caller.isDone && scene.loader.loadCount == 2)
    }

    @Test func `a refused token that has expired frees its place among those remembered`() throws {
        let scene = Scene(), caller = scene.call()
        scene.invalidate(.hour("first"))
        scene.invalidate(AccessToken("short", lifetime: .seconds(1)))
        for number in 1...6 { scene.invalidate(.hour("\(number)")) }
        scene.advance(by: .seconds(1))
        scene.invalidate(.hour("ninth"))
        try scene.deliver(.hour("first"))
        #expect(!caller.isDone && scene.loader.loadCount == 2)
    }

    @Test func `the limit on loads after refusals neither stops nor counts other loads`() throws {
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
