import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("Whether a user is signed in is answered from memory or the store, and starts no load")
struct SignInStateTests {
    /// The answer, and how many loads began.
    private func ask(_ scene: Scene) -> Stage.Player<SignInState> {
        scene.stage.start { [service = scene.service] in await service.signInState() }
    }

    private func stored(_ token: AccessToken, age: TimeInterval = 0) -> ScriptedStore {
        ScriptedStore(StoredToken(token, received: Date(timeIntervalSince1970: -age)))
    }

    @Test func `an empty service is signed out, and a token makes it signed in`() throws {
        let scene = Scene()
        #expect(ask(scene).value?.code == .signedOut && scene.service.cachedSignInState.code == .signedOut)
        scene.replace(with: .granted("a"))
        #expect(ask(scene).value?.code == .validToken && scene.service.cachedSignInState.code == .validToken)
        scene.advance(by: .seconds(3_600))
        #expect(ask(scene).value?.code == .signedIn && scene.service.cachedSignInState.code == .signedIn, "the grant counts")
        scene.reset()
        #expect(ask(scene).value?.code == .signedOut && scene.service.cachedSignInState.code == .signedOut)
        #expect(scene.loader.loadCount == 0)
    }

    @Test func `an expired token without a refresh token is no sign-in`() throws {
        let scene = try Scene.holding(.hour("a"))
        scene.advance(by: .seconds(3_600))
        #expect(ask(scene).value?.code == .signedOut)
    }

    @Test func `a refused grant is signed out, with the refusal, until the user tries again`() throws {
        let scene = Scene()
        scene.replace(with: .granted("a"))
        scene.advance(by: .seconds(3_600))
        let caller = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure(.signIn))
        #expect(caller.code == .loadFailed)
        let state = try #require(ask(scene).value)
        #expect(state.code == .signedOut && state.error?.remedy == .signIn)
        #expect(scene.service.cachedSignInState.code == .signedOut)
        scene.retryNow()
        #expect(ask(scene).value?.code == .signedIn)
    }

    @Test(arguments: [
        (0, true, SignInState.Code.validToken), (7_200, true, .signedIn), (7_200, false, .signedOut),
    ])
    func `a stored token's state is reported, and the next caller gets that token`(
        age: TimeInterval, hasGrant: Bool, code: SignInState.Code
    ) throws {
        let token = hasGrant ? AccessToken.granted("a") : .hour("a")
        let store = stored(token, age: age), scene = Scene(store: store)
        #expect(scene.service.cachedSignInState.code == .unknown)
        #expect(ask(scene).value?.code == code)
        #expect(scene.service.cachedSignInState.code == code)
        #expect(ask(scene).value?.code == code)
        #expect(store.log == ["load"] && scene.loader.loadCount == 0)
        #expect(scene.call().value?.value == (code == .validToken ? "a" : nil))
        #expect(store.log == (code == .signedIn ? ["load", "load"] : ["load"]), "read again before the grant is spent")
    }

    @Test func `an empty store is signed out, and the next caller loads without asking it again`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        #expect(ask(scene).value?.code == .signedOut)
        let caller = scene.call()
        try scene.deliver(.hour("a"))
        #expect(caller.value?.value == "a" && store.log == ["load", "save a"])
    }

    @Test func `questions and callers share one read of the store, in either order`() throws {
        for isAskedFirst in [true, false] {
            let store = ScriptedStore(), scene = Scene(store: store)
            store.hold()
            var callers: [Scene.Caller] = []
            if !isAskedFirst { callers.append(scene.call()) }
            let questions = [ask(scene), ask(scene)]
            if isAskedFirst { callers.append(scene.call()) }
            #expect(questions.allSatisfy { !$0.isDone } && store.log == ["load"])
            scene.release(store)
            // The caller's load has begun, and nobody is signed in yet.
            #expect(questions.map { $0.value?.code } == [.signedOut, .signedOut])
            try scene.deliver(.hour("a"))
            #expect(callers[0].value?.value == "a" && scene.loader.loadCount == 1)
        }
    }

    @Test func `the state is unknown, with the error, while the store can't be read`() throws {
        let store = stored(.granted("a")), scene = Scene(store: store)
        store.fail(.load)
        let state = try #require(ask(scene).value)
        #expect(state.code == .unknown && state.error?.code == .storeFailed)
        store.fail()
        #expect(ask(scene).value?.code == .validToken, "the first retry is free")
    }

    @Test func `repeated questions to a store that fails are paced like callers`() throws {
        let store = stored(.granted("a")), scene = Scene(store: store)
        store.fail(.load)
        for _ in 1...10 { #expect(ask(scene).value?.error?.code == .storeFailed) }
        #expect(store.log == ["load", "load"])
        store.fail()
        scene.retryNow()
        #expect(ask(scene).value?.code == .validToken)
    }

    @Test func `a question to a store that hangs gives up after five seconds`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        let question = ask(scene)
        scene.advance(by: .seconds(5) - .nanoseconds(1))
        #expect(!question.isDone)
        scene.advance(by: .nanoseconds(1))
        #expect(question.value?.code == .unknown && question.value?.error?.code == .storeFailed)
        #expect(ask(scene).value?.code == .unknown, "at once: the store is late")
        scene.release(store)
        #expect(ask(scene).value?.code == .signedOut)
    }

    @Test func `a sign-out during a read of the store answers the question`() throws {
        let store = stored(.granted("a")), scene = Scene(store: store)
        store.hold()
        let question = ask(scene)
        scene.reset()
        #expect(question.value?.code == .signedOut)
        scene.release(store)
        #expect(ask(scene).value?.code == .signedOut && store.contents == nil)
    }

    @Test func `a user counts as signed in while the sign-in is being saved`() throws {
        let store = ScriptedStore(), scene = Scene(store: store)
        store.hold()
        let signIn = scene.signIn(with: .hour("a"))
        #expect(ask(scene).value?.code == .signedIn)
        scene.release(store)
        #expect(signIn.isDone && ask(scene).value?.code == .validToken)
    }

    @Test func `a drained service reads no store to answer the question`() throws {
        let store = stored(.granted("a")), scene = Scene(store: store)
        scene.perform { _ = await $0.drain(within: .zero) }
        #expect(ask(scene).value?.error?.code == .drained && store.log.isEmpty)
    }

    @Test func `a state shows its error and no token`() {
        #expect("\(SignInState(.validToken))" == "validToken")
        #expect("\(SignInState(.unknown, error: TokenServiceError(.storeFailed)))" == "unknown: The token store failed.")
    }
}

@Suite("Whether a user is signed in: keys, and keys that share a refresh token")
struct KeySignInStateTests {
    private func ask(_ key: String, in scene: KeyScene) -> SignInState.Code? {
        scene.stage.start { [services = scene.services] in await services[key].signInState() }.value?.code
    }

    @Test func `each key has its own answer`() {
        let scene = KeyScene(hasStores: true)
        scene.perform("a") { await $0.replace(with: .granted("a")) }
        #expect(ask("a", in: scene) == .validToken && ask("b", in: scene) == .signedOut)
        #expect(scene.makings == ["a", "b"] && scene.loadCount("b") == 0)
    }

    @Test(arguments: [false, true])
    func `keys that share a refresh token are signed in and out together`(hasStores: Bool) {
        let scene = KeyScene(hasStores: hasStores, grant: { String($0.prefix(1)) })
        #expect(ask("a2", in: scene) == .signedOut)
        scene.perform("a1") { await $0.replace(with: .granted("a1", by: "r1")) }
        #expect(ask("a1", in: scene) == .validToken && ask("a2", in: scene) == .signedIn)
        #expect(scene.services["a2"].cachedSignInState.code == .unknown, "memory alone doesn't tell")
        scene.advance(by: .seconds(3_600))
        #expect(ask("a1", in: scene) == .signedIn)
        scene.perform("a2") { _ = await $0.reset() }
        #expect(ask("a1", in: scene) == .signedOut && ask("a2", in: scene) == .signedOut)
        #expect(scene.loadCount("a1") + scene.loadCount("a2") == 0)
    }
}
