import AccessTokens
import AccessTokensKeys
import AccessTokensDispatch
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("The shim over the services of many keys") struct CallbackKeyTests {
    private let stage = Stage()
    private let queue = ManualQueue()
    private let loaders = ["a": ScriptedLoader(), "b": ScriptedLoader()]
    private let log = Log<String>()

    private func services(keepingIdle limit: Int = 10) -> TokenServices<String> {
        TokenServices(
            keepingIdle: limit, environment: .driven(by: stage),
            loader: { [loaders] in loaders[$0] ?? ScriptedLoader() })
    }

    private func shim(_ key: String, of services: TokenServices<String>) -> AccessTokenService {
        AccessTokenService(service: services[key], enqueue: queue.async)
    }

    private func call(_ shim: AccessTokenService, _ name: String) {
        shim.retrieveToken { [log] result in
            switch result {
            case .success(let token): log.append("\(name) \(token.value)")
            case .failure(let error): log.append("\(name) \((error as? TokenServiceError)?.code.description ?? "\(error)")")
            }
        }
    }

    private func run() {
        stage.run()
        queue.run()
    }

    private func succeed(_ key: String, with token: AccessToken) throws {
        let loader = try #require(loaders[key])
        try #require(stage.start { try await loader.nextCall() }.value).succeed(with: token)
        run()
    }

    @Test func `callback and async callers of a key share its load, and don't wait for another key's`() throws {
        let services = services(), shims = ["a", "b"].map { shim($0, of: services) }
        call(shims[0], "first")
        call(shims[1], "second")
        let caller = stage.start { try await services["a"].retrieveToken() }
        run()
        try succeed("b", with: .hour("b1"))
        #expect(log.entries == ["second b1"])
        try succeed("a", with: .hour("a1"))
        #expect(log.entries == ["second b1", "first a1"] && caller.value?.value == "a1")
        #expect(loaders.mapValues(\.loadCount) == ["a": 1, "b": 1])
    }

    @Test func `a shim holds its key's service, so that the key has no second one`() throws {
        let services = services(keepingIdle: 0), shim = shim("a", of: services)
        call(shim, "first")
        run()
        try succeed("a", with: .hour("a1"))
        #expect(services["a"] === shim.service && services.counts.released == 1)
        #expect(services["a"].cachedToken?.value == "a1")
    }

    @Test func `a sign-out of an account answers the callbacks of its keys`() throws {
        let services = services(), shims = ["a", "b"].map { shim($0, of: services) }
        call(shims[0], "first")
        call(shims[1], "second")
        run()
        let change = stage.start { await services.reset { $0 == "a" } }
        run()
        #expect(log.entries == ["first reset"] && change.value?.changes.keys.sorted() == ["a"])
        try succeed("b", with: .hour("b1"))
        #expect(log.entries == ["first reset", "second b1"])
    }
}
