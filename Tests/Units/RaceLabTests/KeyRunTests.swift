import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@testable import race_lab

@Suite struct `The load over many keys` {
    @Test func `each key loads once for each expiry, loses no grant, and gets no other key's token`() async throws {
        let summary = await KeyRun.simulate(.init(count: 200, idle: 20), callers: 20) { _ in }
        #expect(summary.error == nil)
        #expect(summary.passes.map(\.name) == ["sign-in", "expiry 1", "expiry 2"])
        #expect(summary.passes.map(\.loads) == [0, 200, 200])
        #expect(summary.calls == 800 && summary.failures == 0)
        #expect(summary.grantsLost == 0 && summary.wrongKeyTokens == 0)
        // Ten keys are in use at once; an ended service's last task may hold it for a moment.
        #expect((20...100).contains(summary.mostServices), "\(summary.mostServices)")
    }

    @Test func `with room for all keys each service is made once`() async {
        let summary = await KeyRun.simulate(.init(count: 50, idle: 50), callers: 10) { _ in }
        #expect(summary.error == nil && summary.mostServices == 50)
    }

    @Test func `the table fits a terminal of 80 columns, for a million keys too`() async {
        let summary = await KeyRun.simulate(.init(count: 3, idle: 0), callers: 1) { _ in }
        #expect(summary.description.contains("expiry 2"))
        #expect(summary.description.tooLong == [])
        var counts = KeyTally.Counts()
        (counts.calls, counts.loads, counts.wrongTokens, counts.mostServices) = (20_000_000, 1_000_000, 1_000_000, 1_000_000)
        let pass = KeySummary.Pass(
            name: "expiry 1000", keys: 1_000_000, counts: counts, lostGrants: 1_000_000, elapsed: .seconds(9), memoryMiB: 99_999)
        let options = Options.Keys(count: 1_000_000, idle: 1_000_000)
        #expect(KeySummary(options, callers: 10_000, [pass]).description.tooLong == [])
        for isSimulated in [true, false] { #expect(options.opening(callers: 10_000, isSimulated: isSimulated).tooLong == []) }
        #expect(Options.Keys(count: 1, idle: 0).opening(callers: 1, isSimulated: true).hasPrefix("1 key, with a token from"))
    }

    @Test func `the JSON has the run's figures and those of each pass`() async throws {
        let summary = await KeyRun.simulate(.init(count: 4, idle: 1), callers: 2) { _ in }
        let json = try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(summary)) as? [String: Any])
        for (name, number) in [
            "keys": 4, "idle": 1, "callers": 2, "calls": 16, "failures": 0, "loads": 8, "loadsPerKey": 1, "grantsLost": 0,
            "wrongKeyTokens": 0,
        ] {
            #expect(json[name] as? Int == number, "\(name)")
        }
        #expect((json["passes"] as? [[String: Any]])?.map { $0["loads"] as? Int } == [0, 4, 4])
        #if os(Linux)
        #expect(json["memoryMiB"] as? Int ?? 0 > 0)
        #endif
    }

    @Test func `a summary is an error when calls failed, grants were lost or tokens were mixed up`() {
        var counts = KeyTally.Counts()
        (counts.calls, counts.failures, counts.reason, counts.wrongTokens) = (4, 2, "the server is down", 1)
        let pass = KeySummary.Pass(name: "expiry 1", keys: 2, counts: counts, lostGrants: 3, elapsed: .zero)
        #expect(
            KeySummary(.init(count: 2, idle: 0), callers: 2, [pass]).error
                == "2 of 4 calls failed, the first one because: the server is down; 3 grants lost; 1 call got another key's token"
        )
    }

    @Test func `the simulated server takes each refresh token once, and counts a grant that is lost`() async throws {
        let server = AccountServer(accounts: 3), stores = AccountStores(accounts: 3)
        let first = server.signIn(1)
        #expect(server.lostGrants(withOnly: stores) == 1, "the stores don't have it yet")
        try await stores.store(for: 1).save(StoredToken(first, received: Date()))
        #expect(server.lostGrants(withOnly: stores) == 0)

        let second = try server.refresh(first)
        #expect(AccountToken(second.value) == AccountToken(account: 1, number: 2))
        #expect(server.lostGrants(withOnly: stores) == 1, "a rotation that no store has")
        try await stores.store(for: 1).save(StoredToken(second, received: Date()))
        #expect(server.lostGrants(withOnly: stores) == 0)

        #expect(throws: ScriptedFailure.grantRefused) { try server.refresh(first) }
        #expect(throws: ScriptedFailure.grantRefused) { try server.refresh(second) }
        #expect(server.lostGrants(withOnly: stores) == 1, "reuse ends the grant")
        for unknown in [nil, AccessToken("access 1 2"), AccountToken(account: 7, number: 1).token] {
            #expect(throws: ScriptedFailure.grantRefused) { try server.refresh(unknown) }
        }
    }

    @Test func `the simulated server's stores keep, list and forget what is saved`() async throws {
        let stores = AccountStores(accounts: 2)
        let saved = StoredToken(AccountToken(account: 1, number: 5).token, received: Date(timeIntervalSince1970: 7))
        #expect(try await stores.store(for: 1).load() == nil)
        try await stores.store(for: 1).save(saved)
        let loaded = try #require(try await stores.store(for: 1).load())
        #expect(AccountToken(loaded.token.refreshToken) == AccountToken(saved.token.refreshToken))
        #expect(loaded.received == saved.received)
        #expect(await stores.storedKeys() == [1])
        try await stores.store(for: 1).remove()
        #expect(await stores.storedKeys() == [])
    }

    @Test func `the tally counts another key's token, refused keys and living services`() async throws {
        let tally = KeyTally { key, token in AccountToken(token.value)?.account != key }
        var loader: (any TokenLoader)? = tally.counting(ClosureLoader())
        tally.note(.success(AccountToken(account: 1, number: 1).token), of: 1)
        tally.note(.success(AccountToken(account: 1, number: 1).token), of: 2)
        _ = try await loader?.loadToken(replacing: nil)
        let counts = tally.take()
        #expect(counts.calls == 2 && counts.wrongTokens == 1 && counts.failures == 0 && counts.loads == 1)
        #expect(counts.services == 1 && counts.mostServices == 1 && counts.lifetime == AccountToken.lifetime)
        loader = nil
        #expect(tally.take().services == 0)

        // A limit that a starved pool can't reach.
        let service = TokenService(policy: RefreshPolicy(loadTimeout: .seconds(3_600))) { _ in throw ScriptedFailure.grantRefused
        }
        let outcome: Result<AccessToken, any Error>
        do { outcome = .success(try await service.retrieveToken()) } catch { outcome = .failure(error) }
        tally.note(outcome, of: 3)
        #expect(tally.refused == 1 && tally.take().failures == 1)
    }

    private struct ClosureLoader: TokenLoader {
        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken { AccessToken("loaded") }
    }
}

@Suite struct `Many keys on the command line` {
    @Test(arguments: [
        (["--keys", "50"], 50, 5), (["--keys=1000000"], 1_000_000, 1_000), (["--keys", "9", "--idle", "0"], 9, 0),
    ])
    func `--keys keeps a tenth of them, 1000 at most, unless --idle says otherwise`(
        _ arguments: [String], _ count: Int, _ idle: Int
    ) throws {
        #expect(try Options(parsing: arguments).keys == Options.Keys(count: count, idle: idle))
    }

    @Test(
        arguments: [
            (["--keys"], "--keys needs a value"),
            (["--keys", "0"], "--keys expects a whole number from 1 to 1000000"),
            (["--keys", "1000001"], "--keys expects a whole number from 1 to 1000000"),
            (["--keys", "5", "--idle", "-1"], "--idle expects a whole number from 0 to 1000000"),
            (["--idle", "5"], "--idle is for many keys: give --keys as well"),
            (["--show", "stage 2", "--keys", "5"], "--show draws one schedule: leave out --keys"),
            (
                ["--keys", "5", "--store", "tokens"],
                "--store is for a real server or several processes: give --token-url or --processes as well"
            ),
            (
                ["--keys", "10001", "--token-url", "https://a.example/", "--client-id", "me"],
                "--keys expects a whole number from 1 to 10000"
            ),
        ])
    func `an error about keys says what to do`(_ arguments: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try Options(parsing: arguments) }
    }

    @Test(
        arguments: [
            ("r1 r2", "REFRESH_TOKEN has 2 refresh tokens for 3 keys: put one for each key there, separated by spaces"),
            ("r1 r2 r1", "REFRESH_TOKEN has the same refresh token twice: give each key its own"),
        ])
    func `REFRESH_TOKEN must have a refresh token for each key`(_ text: String, _ message: String) async throws {
        let server = try #require(
            try Options(parsing: ["--token-url", "https://a.example/", "--client-id", "me"]).server)
        await #expect(throws: UsageError(message)) { try await server.stores(ofUsers: 3, seeds: text) }
    }

    @Test func `each key's store begins with its own refresh token, and the file goes on with the next`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "race-lab-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = try #require(
            try Options(parsing: [
                "--token-url", "https://a.example/", "--client-id", "me", "--store", directory.path,
            ]).server)
        let stores = try await server.stores(ofUsers: 2, seeds: "r1\nr2")
        #expect(try await stores.store(for: 1).load()?.token.refreshToken == "r2")
        let next = StoredToken(AccessToken("a", lifetime: .seconds(1), refreshToken: "r3"), received: Date())
        try await stores.store(for: 1).save(next)
        let again = try await server.stores(ofUsers: 2, seeds: "r1 r2")
        #expect(try await again.store(for: 0).load()?.token.refreshToken == "r1")
        #expect(try await again.store(for: 1).load()?.token.refreshToken == "r3")
        #expect(try await again.storedKeys() == [1])
    }
}
