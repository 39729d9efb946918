import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@testable import DataLoading

@Suite(.timeLimit(.minutes(10)))
struct KeyStepUpTests {
    /// Two accounts at one API, each with a step-up and a way to its own scopes.
    private struct Accounts {
        let server: ScopedServer
        let asked = ScopedServer.Log()
        let services: TokenServices<String>
        let loaders: [String: DataLoader]

        init(
            _ server: ScopedServer, keepingIdle: Int = 1000,
            widen: @escaping @Sendable (_ services: TokenServices<String>, _ key: String) async -> Void = { _, _ in }
        ) throws {
            let asked = asked
            let services = TokenServices<String>(keepingIdle: keepingIdle) { key, _ in ScopedServer.token("read \(key)") }
            loaders = try Dictionary(
                uniqueKeysWithValues: ["ann", "bob"].map { key in
                    let tokens = try OriginTokens(
                        keys: [server.url: key],
                        stepUp: { key in
                            StepUp { scope, _ in
                                asked.append("\(key): \(scope)")
                                await widen(services, key)
                                return ScopedServer.token(scope)
                            }
                        }, service: { services[$0] })
                    return (key, DataLoaderFactory(tokens: tokens).makeLoader())
                })
            self.server = server
            self.services = services
        }

        func status(_ key: String, _ path: String) async throws -> Int? {
            try await loaders[key]?.perform(Request(url: server.url.appending(path: path))).status
        }
    }

    @Test func `48: a step-up of one key asks the user once, for that key, and another key keeps its token`() async throws {
        let accounts = try Accounts(ScopedServer())
        #expect(try await accounts.status("bob", "read") == 200)
        async let first = accounts.status("ann", "write"), second = accounts.status("ann", "write")
        async let other = accounts.status("bob", "bob")
        #expect(try await [first, second, other] == [200, 200, 200])
        #expect(accounts.asked.all == ["ann: read ann write"])
        #expect(accounts.services["ann"].cachedToken?.value == "t.read.ann.write")
        #expect(accounts.services["bob"].cachedToken?.value == "t.read.bob")
        #expect(try await accounts.status("bob", "write") == 200)
        #expect(accounts.asked.all.last == "bob: read bob write")
    }

    @Test func `a key that signs out during its step-up gets none of its scopes, and the other key steps up`() async throws {
        let accounts = try Accounts(ScopedServer()) { services, key in
            if key == "ann" { _ = await services[key].reset() }
        }
        async let other = accounts.status("bob", "write")
        let error = await #expect(throws: TokenServiceError.self) { try await accounts.status("ann", "write") }
        #expect(error?.code == .reset && accounts.services["ann"].cachedToken == nil)
        #expect(try await other == 200 && accounts.services["bob"].cachedToken?.value == "t.read.bob.write")
    }

    @Test func `the origins of one key share its step-up, and another key's origin has its own`() async throws {
        let servers = try (1...3).map { _ in try ScopedServer() }, made = ScopedServer.Log(), asked = ScopedServer.Log()
        let services = TokenServices<String> { key, _ in ScopedServer.token("read") }
        let keys = [servers[0].url: "ann", servers[1].url: "ann", servers[2].url: "bob"]
        let tokens = try OriginTokens(
            keys: keys,
            stepUp: { key in
                made.append(key)
                return StepUp { scope, _ in
                    asked.append("\(key): \(scope)")
                    return ScopedServer.token(scope)
                }
            }, service: { services[$0] })
        let loader = DataLoaderFactory(tokens: tokens).makeLoader()
        for server in servers {
            #expect(try await loader.perform(Request(url: server.url.appending(path: "write"))).status == 200)
        }
        #expect(made.all.sorted() == ["ann", "bob"] && asked.all == ["ann: read write", "bob: read write"])
    }

    // A new service's generations begin again, and its tokens may not list their scopes.
    @Test func `a new service of a key doesn't assume the scopes that a released one gained`() async throws {
        let server = try ScopedServer(), asked = ScopedServer.Log()
        let current = Lock(await silentService())
        let loader = try silentLoader(server, asked) { _ in current.withLock { $0 } }
        for path in ["a", "b"] {
            let next = await silentService()
            // As many changes as the step-up has made to the first service.
            await next.replace(with: ScopedServer.token("read", says: false))
            #expect(try await loader.perform(Request(url: server.url.appending(path: path))).status == 200)
            current.withLock { $0 = next }
        }
        #expect(asked.all == ["read a", "read b"])
    }

    @Test func `a key whose service is released between requests keeps the scopes it gained, even if no token lists them`()
        async throws
    {
        let server = try ScopedServer(), asked = ScopedServer.Log()
        let services = TokenServices<String>(keepingIdle: 0, stores: InMemoryTokenStores()) { _, _ in throw ScriptedFailure() }
        await services["ann"].replace(with: ScopedServer.token("read", says: false))
        let loader = try silentLoader(server, asked) { services[$0] }
        for path in ["a", "b", "a", "b"] {
            #expect(try await loader.perform(Request(url: server.url.appending(path: path))).status == 200)
        }
        #expect(asked.all == ["read a", "read a b"])
    }

    private func silentService() async -> TokenService {
        let service = TokenService { _ in throw ScriptedFailure() }
        await service.replace(with: ScopedServer.token("read", says: false))
        return service
    }

    /// Returns a loader whose tokens, including those of its step-ups, don't list their scopes.
    private func silentLoader(
        _ server: ScopedServer, _ asked: ScopedServer.Log, _ service: @escaping @Sendable (String) -> TokenService
    ) throws -> DataLoader {
        let tokens = try OriginTokens(
            keys: [server.url: "ann"],
            stepUp: { _ in
                StepUp(scope: "read") { scope, _ in
                    asked.append(scope)
                    return ScopedServer.token(scope, says: false)
                }
            }, service: service)
        return DataLoaderFactory(tokens: tokens).makeLoader()
    }
}
