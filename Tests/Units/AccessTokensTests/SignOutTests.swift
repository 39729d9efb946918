import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantee 6: sign-out is a fence")
struct SignOutTests {
    @Test func `reset returns the dropped token, whose grant is to be revoked, and leaves the service empty`() throws {
        let scene = try Scene.holding(AccessToken("a", lifetime: .seconds(60), refreshToken: "r"))
        scene.advance(by: .seconds(100))
        let dropped = scene.signOut()
        #expect(dropped.value?.discarded.first?.refreshToken == "r", "also when the access token has expired")
        let again = scene.signOut()
        #expect(again.value?.discarded.isEmpty == true)
        let caller = scene.call()
        let load = try scene.load()
        #expect(load.previous == nil, "empty, not locked: the next call loads with nothing from before")
        scene.succeed(load, with: .hour("b"))
        #expect(caller.value?.value == "b")
    }

    // Museum 7: sign-out during a load is undone by its result (supabase-swift#1371; Alamofire; Auth0.swift).
    @Test(arguments: [true, false])
    func `the result of a load that began before the reset is discarded`(isRepeatable: Bool) throws {
        let scene = Scene(isRepeatable: isRepeatable)
        let waiting = scene.calls(3)
        let load = try scene.load()
        scene.reset()
        #expect(waiting.allSatisfy { $0.code == .reset }, "those who wait learn it at once")
        scene.succeed(load, with: .hour("old"))
        #expect(scene.service.cachedToken == nil)
        let next = scene.call()
        #expect(!next.isDone)
        try scene.deliver(.hour("new"))
        #expect(next.value?.value == "new")
    }

    @Test func `a late failure is discarded too: no pause, no error, no event`() throws {
        let scene = Scene()
        _ = scene.call()
        let load = try scene.load()
        scene.reset()
        let events = scene.service.events()
        scene.fail(load, with: ScriptedFailure.grantRefused)
        let next = scene.call()
        try scene.deliver(.hour("new"))
        #expect(next.value?.value == "new")
        let names = scene.stage.start {
            var iterator = events.makeAsyncIterator()
            return [await iterator.next()?.name, await iterator.next()?.name]
        }
        #expect(names.value == [.loadStarted, .loadSucceeded])
    }

    @Test func `a reset and a caller that race to the actor cause at most one load, and both end`() throws {
        let scene = Scene()
        let both = scene.stage.start { [service = scene.service] in
            async let reset = service.reset()
            async let token = service.retrieveToken()
            return (await reset, try? await token)
        }
        // In whatever order the two reached the actor, there is at most one load, and none across the fence.
        #expect(scene.loader.loadCount <= 1)
        if let load = try? scene.load() { scene.succeed(load, with: .hour("a")) }
        #expect(both.isDone)
    }

    // Museum 8: user B signs in during A's load; A's result overwrites (Alamofire).
    @Test func `after a change of user during a load, no caller sees the first user's token or grant`() throws {
        let scene = Scene()
        let alice = scene.call()
        let load = try scene.load()
        scene.reset()
        scene.replace(with: AccessToken("bob", lifetime: .seconds(3600), refreshToken: "bob's grant"))
        scene.succeed(load, with: AccessToken("alice", lifetime: .seconds(3600), refreshToken: "alice's grant"))
        #expect(alice.code == .reset)
        #expect(scene.call().value?.value == "bob")
        scene.invalidate(.hour("bob"))
        _ = scene.call()
        #expect(try scene.load().previous?.refreshToken == "bob's grant")
    }

    @Test func `replace answers the waiters with the new token and discards the load`() throws {
        let scene = Scene()
        let waiting = scene.calls(3)
        let load = try scene.load()
        scene.replace(with: .hour("given"))
        #expect(waiting.allSatisfy { $0.value?.value == "given" })
        scene.succeed(load, with: .hour("late"))
        #expect(scene.call().value?.value == "given")
    }

    @Test func `an expired token passed to replace starts a load, for which the waiters go on waiting`() throws {
        let scene = Scene()
        let waiting = scene.call()
        let first = try scene.load()
        scene.replace(with: AccessToken("expired", lifetime: .zero, refreshToken: "r"))
        #expect(!waiting.isDone)
        let second = try scene.load()
        #expect(second.previous?.refreshToken == "r")
        scene.succeed(first, with: .hour("late"))
        #expect(!waiting.isDone)
        scene.succeed(second, with: .hour("new"))
        #expect(waiting.value?.value == "new")
    }

    @Test(arguments: [true, false])
    func `reset and replace both clear refusals and back-off`(byReset: Bool) throws {
        let scene = try Scene.holding(.hour("a"))
        scene.invalidate(.hour("a"))
        for _ in 1...3 {
            _ = scene.call()
            if let load = try? scene.load() { scene.fail(load) }
        }
        #expect(scene.call().code == .loadFailed, "a pause is on")
        if byReset { scene.reset() } else { scene.replace(with: AccessToken("x", lifetime: .zero)) }
        let caller = scene.call()
        try scene.deliver(.hour("a"))
        #expect(caller.value?.value == "a", "the string refused before the fence is good after it")
    }

    @Test func `a load fenced off before it began doesn't begin, so the old grant isn't used`() throws {
        let scene = try Scene.holding(AccessToken("a", lifetime: .seconds(60), refreshToken: "old"))
        scene.advance(by: .seconds(60))
        // Both are on their way to the actor before the load's task gets its turn.
        let caller = Task(executorPreference: scene.stage) { [service = scene.service] in try await service.retrieveToken() }
        let signOut = Task(executorPreference: scene.stage) { [service = scene.service] in await service.reset() }
        scene.stage.run()
        #expect(scene.loader.loadCount == 1, "the first token's load is the only one")
        withExtendedLifetime((caller, signOut)) {}
    }

    @Test func `a caller that was answered keeps its answer through a reset`() throws {
        let scene = Scene()
        let caller = scene.call()
        let load = try scene.load()
        scene.succeed(load, with: .hour("a"))
        scene.reset()
        #expect(caller.value?.value == "a")
    }

    @Test func `a caller on its way while a token is put in place gets that token`() {
        let scene = Scene(), answers = Log<String?>()
        scene.replace(with: .hour("given"))
        scene.perform { service in
            await service.joinCallbacks(callers: 1, seen: 0) { answers.append(try? $0.get().value) }
        }
        #expect(answers.entries == ["given"])
    }

    // Four of five servers keep the successor alive if only the presented token is revoked.
    @Test(arguments: [true, false], [true, false])
    func `a fence lets a load that spends a grant end, and hands its grant over`(byReset: Bool, isRepeatable: Bool) throws {
        let scene = try Scene.holding(.granted("old"), isRepeatable: isRepeatable)
        scene.invalidate(.hour("old"))
        let caller = scene.call(), load = try scene.load()
        if byReset { scene.reset() } else { scene.replace(with: .granted("given")) }
        #expect(byReset ? caller.code == .reset : caller.value?.value == "given", "at once")
        #expect(!load.isCancelled)
        let drain = scene.stage.start { [service = scene.service] in await service.drain(within: .seconds(60)).isComplete }
        #expect(!drain.isDone, "the program's end waits for it")
        scene.succeed(load, with: .granted("successor"))
        #expect(drain.value == true)
        let reason = byReset ? "signedOut" : "replaced"
        #expect(scene.discards == ["old \(reason)", "successor \(reason)"])
        #expect(scene.service.cachedToken?.value == (byReset ? nil : "given"))
    }

    @Test(arguments: [true, false])
    func `a fence cancels a load that spends no grant and may be repeated`(byReset: Bool) throws {
        let scene = Scene(isRepeatable: true)
        _ = scene.call()
        let load = try scene.load()
        if byReset { scene.reset() } else { scene.replace(with: .hour("given")) }
        #expect(load.isCancelled)
    }

    @Test func `a load that a fence let go on is cancelled once it is forgotten, whatever runs since`() throws {
        let scene = Scene()
        _ = scene.call()
        let first = try scene.load()
        scene.reset()
        _ = scene.call()
        let second = try scene.load()
        scene.reset()
        scene.advance(by: .milliseconds(119_999))
        let third = scene.call()
        #expect(!first.isCancelled && !second.isCancelled)
        scene.advance(by: .milliseconds(1))
        scene.retryNow()
        #expect(first.isCancelled && second.isCancelled && !third.isDone)
        scene.succeed(second, with: .granted("late"))
        try scene.deliver(.hour("new"))
        #expect(third.value?.value == "new" && scene.discards == ["late signedOut"])
    }
}
