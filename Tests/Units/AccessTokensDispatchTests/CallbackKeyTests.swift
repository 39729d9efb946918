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

    @Test func `a shim keeps its key's service alive, so that the key gets no second one`() throws {
        let services = services(keepingIdle: 0), shim = shim("a", of: services)
        call(shim, "first")
        run()
        try succeed("a", with: .hour("a1"))
        #expect(services["a"] === shim.service && services.counts.released == 1)
        #expect(services["a"].cachedToken?.value == "a1")
    }

    @Test(arguments: ["a", "b"])
    func `52: a sign-out of one key ends every key's session before it returns`(key: String) throws {
        let services = TokenServices(
            grant: { _ in "keeper" }, environment: .driven(by: stage), loader: { [loaders] in loaders[$0] ?? ScriptedLoader() })
        let shims = ["a": shim("a", of: services), "b": shim("b", of: services)]
        _ = stage.start { await services["a"].replace(with: AccessToken("a1", lifetime: .seconds(3_600), refreshToken: "anna")) }
        let first = stage.start { try await services["b"].retrieveToken() }
        try succeed("b", with: .hour("b1"))
        #expect(first.value?.value == "b1" && services["a"].cachedToken?.value == "a1")
        let dropped = log
        shims[key]?.reset { change in dropped.append(change.discarded.map(\.value).sorted().joined(separator: " ")) }
        // Nothing has run yet.
        #expect(["a", "b"].allSatisfy { services[$0].cachedToken == nil })
        shims[key]?.replace(with: .hour("ben's"))
        #expect(["a", "b"].allSatisfy { services[$0].cachedToken == nil })
        run()
        #expect(services[key].cachedToken?.value == "ben's")
        #expect(services[key == "a" ? "b" : "a"].cachedToken == nil)
        #expect(log.entries.count == 1 && log.entries[0].contains("a1"), "\(log.entries)")
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
