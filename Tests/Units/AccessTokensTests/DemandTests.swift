import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// A token of an hour, the first load of each scene; half of its life is over at 1,800 s.
@Suite("Guarantee 56: what a call asks of a token, besides that it is valid")
struct DemandTests {
    private func demand(_ scene: Scene, _ minimum: Duration, within limit: Duration? = nil) -> Scene.Caller {
        scene.stage.start { [service = scene.service] in try await service.retrieveToken(validFor: minimum, within: limit) }
    }

    private func reload(_ scene: Scene, within limit: Duration? = nil) -> Scene.Caller {
        scene.stage.start { [service = scene.service] in try await service.reloadToken(within: limit) }
    }

    // MARK: A minimum

    @Test(arguments: [(0, 600), (1800, 1800), (3000, 600)])
    func `56: a token with enough time left is returned at once`(second: Int, minimum: Int) throws {
        let scene = try Scene.holding(.hour("a"), policy: RefreshPolicy(maximumRefreshWindow: .zero))
        scene.advance(by: .seconds(second))
        #expect(demand(scene, .seconds(minimum)).value?.value == "a")
        #expect(scene.loader.loadCount == 1)
    }

    @Test(arguments: [(1801, 1800), (3001, 600), (3539, 62), (1801, 10_000)])
    func `56: a token with too little time left is replaced first, while other callers still get it`(second: Int, minimum: Int)
        throws
    {
        let scene = try Scene.holding(.hour("a"), policy: RefreshPolicy(maximumRefreshWindow: .zero))
        scene.advance(by: .seconds(second))
        let first = demand(scene, .seconds(minimum)), second = demand(scene, .seconds(minimum))
        #expect(first.isWaiting && second.isWaiting && scene.call().value?.value == "a")
        #expect(scene.loader.loadCount == 2)
        try scene.deliver(.hour("b"))
        #expect(first.value?.value == "b" && second.value?.value == "b" && scene.call().value?.value == "b")
    }

    @Test func `56: a call with a demand joins a refresh that is already running`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3400))
        _ = scene.call()
        let caller = demand(scene, .seconds(600))
        #expect(caller.isWaiting && scene.loader.loadCount == 2)
        try scene.deliver(.hour("b"))
        #expect(caller.value?.value == "b")
    }

    @Test(arguments: [Duration.seconds(60), .seconds(600), .seconds(100_000)])
    func `56: 1,000 calls in a row that demand more than the server grants cause few loads`(minimum: Duration) throws {
        let scene = try Scene.holding(AccessToken("0", lifetime: .seconds(60)))
        for number in 1...1_000 {
            let caller = demand(scene, minimum)
            if caller.isWaiting { try scene.deliver(AccessToken("\(number)", lifetime: .seconds(60))) }
            #expect(caller.value != nil)
            scene.advance(by: .milliseconds(100))
        }
        // 100 seconds, a load each 30.
        #expect(scene.loader.loadCount == 4)
    }

    @Test func `56: while the server fails, a call with a demand gets the current token, and the pauses hold`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(2000))
        let first = demand(scene, .seconds(3000))
        scene.fail(try scene.load())
        #expect(first.value?.value == "a")
        for _ in 1...1_000 { #expect(demand(scene, .seconds(3000)).value?.value == "a") }
        #expect(scene.loader.loadCount == 2)
        scene.advance(by: .seconds(38))
        let later = demand(scene, .seconds(3000))
        try scene.deliver(.hour("b"))
        #expect(later.value?.value == "b")
    }

    @Test func `56: a refused grant isn't presented again for a call with a demand`() throws {
        let scene = try Scene.holding(.granted("a"))
        scene.advance(by: .seconds(2000))
        _ = demand(scene, .seconds(3000))
        scene.fail(try scene.load(), with: ScriptedFailure.grantRefused)
        scene.advance(by: .seconds(1000))
        #expect(demand(scene, .seconds(3000)).value?.value == "a")
        #expect(reload(scene).code == .loadFailed)
        #expect(scene.loader.loadCount == 2)
    }

    @Test func `56: a call with a demand gets the current token when its own limit passes`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(2000))
        let caller = demand(scene, .seconds(3000), within: .seconds(1))
        #expect(caller.isWaiting && demand(scene, .seconds(3000), within: .zero).value?.value == "a")
        scene.advance(by: .seconds(1))
        #expect(caller.value?.value == "a")
    }

    @Test(arguments: [true, false])
    func `56: a call with a demand gets the current token when its load times out`(isRepeatable: Bool) throws {
        let scene = try Scene.holding(.hour("a"), isRepeatable: isRepeatable)
        scene.advance(by: .seconds(2000))
        let caller = demand(scene, .seconds(3000))
        scene.advance(by: .seconds(30))
        #expect(caller.value?.value == "a")
    }

    @Test func `56: a stored token with too little time left is replaced by the first call of a new process`() async throws {
        let store = ScriptedStore(StoredToken(.hour("stored"), received: .init(timeIntervalSince1970: -3_000)))
        let scene = Scene(store: store)
        let caller = demand(scene, .seconds(1_000))
        #expect(caller.isWaiting)
        try scene.deliver(.hour("a"))
        #expect(caller.value?.value == "a")
    }

    @Test func `56: a sign-out ends a call with a demand, and a sign-in answers it`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(2000))
        let first = demand(scene, .seconds(3000)), second = reload(scene)
        _ = scene.signOut()
        #expect(first.code == .reset && second.code == .reset)
        scene.replace(with: .hour("b"))
        scene.advance(by: .seconds(2000))
        let third = demand(scene, .seconds(3000)), fourth = reload(scene)
        scene.replace(with: .hour("c"))
        #expect(third.value?.value == "c" && fourth.value?.value == "c")
    }

    // MARK: The time that is left

    @Test func `56: the time left counts to the token's real end, on the service's clock`() throws {
        let scene = try Scene.holding(.hour("a"))
        let token = try #require(scene.call().value)
        scene.advance(by: .seconds(1000))
        #expect(scene.service.timeLeft(of: token) == .seconds(2600))
        #expect(scene.service.timeLeft(of: .hour("b")) == .zero)
        scene.replace(with: AccessToken("c"))
        #expect(scene.service.timeLeft(of: token) == .zero)
        #expect(scene.service.timeLeft(of: AccessToken("c")) == nil)
        #expect(demand(scene, .seconds(100_000)).value?.value == "c")
    }

    // MARK: A load from now on

    @Test func `56: reloadToken joins no load that began before the call`() throws {
        let scene = Scene()
        let plain = scene.call(), first = reload(scene), second = reload(scene)
        try scene.deliver(.hour("a"))
        #expect(plain.value?.value == "a" && first.isWaiting && second.isWaiting)
        #expect(scene.call().value?.value == "a", "others get what there is")
        let third = reload(scene)
        try scene.deliver(.hour("b"))
        #expect(first.value?.value == "b" && second.value?.value == "b" && third.isWaiting)
        try scene.deliver(.hour("c"))
        #expect(third.value?.value == "c" && scene.call().value?.value == "c" && scene.loader.loadCount == 3)
    }

    @Test func `56: reloadToken isn't failed by a load that began before the call`() throws {
        let scene = Scene()
        let plain = scene.call(), caller = reload(scene)
        scene.fail(try scene.load())
        #expect(plain.code == .loadFailed && caller.isWaiting)
        try scene.deliver(.hour("a"))
        #expect(caller.value?.value == "a")
    }

    @Test func `56: an older load's failure doesn't reach reloadToken, although another load has begun since`() throws {
        let scene = Scene()
        // Answered first, it asks again before the reload does.
        let plain = scene.stage.start { [service = scene.service] in
            if let token = try? await service.retrieveToken() { return token }
            return try await service.retrieveToken()
        }
        let caller = reload(scene)
        scene.fail(try scene.load())
        #expect(plain.isWaiting && caller.isWaiting && scene.loader.loadCount == 2)
        try scene.deliver(.hour("b"))
        #expect(plain.value?.value == "b" && caller.value?.value == "b")
    }

    @Test func `56: an older load's token doesn't answer reloadToken, although a newer one has arrived since`() throws {
        let scene = Scene()
        let user = scene.stage.start { [service = scene.service] in
            let token = try await service.retrieveToken()
            await service.replace(with: .hour("newer"))
            return token
        }
        let caller = reload(scene)
        try scene.deliver(.hour("older"))
        #expect(user.value?.value == "older" && caller.value?.value == "newer" && scene.loader.loadCount == 1)
    }

    @Test func `56: a loader that asks its own service for a longer life gets the current token at once`() {
        let stage = Stage(), clock = ManualClock(), own = Lock<TokenService?>(nil), answers = Log<String>()
        let service = TokenService(environment: .driven(by: stage, clock: clock)) { _ in
            guard let service = own.withLock({ $0 }) else { return .hour("a") }
            answers.append(try await service.retrieveToken(validFor: .seconds(3000)).value)
            return .hour("b")
        }
        _ = stage.start { try await service.retrieveToken() }
        own.withLock { $0 = service }
        clock.advance(by: .seconds(2000))
        let caller = stage.start { try await service.retrieveToken(validFor: .seconds(3000)) }
        #expect(answers.entries == ["a"] && caller.value?.value == "b")
        own.withLock { $0 = nil }
    }

    @Test func `56: reloadToken gets the error if its load fails, never the older token`() throws {
        let scene = try Scene.holding(.hour("a"))
        let caller = reload(scene)
        scene.fail(try scene.load())
        #expect(caller.code == .loadFailed && scene.call().value?.value == "a" && scene.loader.loadCount == 2)
    }

    @Test func `56: calls of reloadToken cause at most 5 loads in 30 s, whether they succeed or fail`() throws {
        for fails in [true, false] {
            let scene = try Scene.holding(.hour("a"))
            for number in 1...1_000 {
                let caller = reload(scene)
                guard caller.isWaiting else {
                    #expect(caller.code == .tooManyInvalidations && caller.retryAt == 30)
                    #expect((caller.error as? TokenServiceError)?.remedy == .retry)
                    continue
                }
                if fails { scene.fail(try scene.load()) } else { try scene.deliver(.hour("\(number)")) }
            }
            #expect(scene.loader.loadCount == 6)
            #expect(scene.call().value != nil, "others are served")
        }
    }

    @Test func `56: reloadToken gets a token that arrives inside its leeway, as other callers do`() throws {
        let scene = Scene(), caller = reload(scene)
        scene.advance(by: .milliseconds(4_600))
        try scene.deliver(AccessToken("a", lifetime: .seconds(5)))
        #expect(caller.value?.value == "a" && scene.loader.loadCount == 1)
    }

    @Test func `56: an older load that ends late doesn't answer reloadToken`() throws {
        let scene = Scene(isRepeatable: true)
        _ = scene.call()
        let late = try scene.load()
        scene.advance(by: .seconds(30))
        let caller = reload(scene)
        scene.succeed(late, with: .hour("old"))
        #expect(caller.isWaiting && scene.call().value?.value == "old")
        try scene.deliver(.hour("new"))
        #expect(caller.value?.value == "new")
    }

    @Test func `56: a cancelled caller leaves alone`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(2000))
        let first = demand(scene, .seconds(3000)), second = demand(scene, .seconds(3000)), third = reload(scene)
        first.cancel()
        third.cancel()
        scene.stage.run()
        #expect(first.error is CancellationError && third.error is CancellationError && second.isWaiting)
        try scene.deliver(.hour("b"))
        #expect(second.value?.value == "b")
    }
}

extension Stage.Player {
    fileprivate var isWaiting: Bool { !isDone }
}
