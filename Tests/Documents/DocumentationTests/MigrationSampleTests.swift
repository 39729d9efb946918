import AccessTokens
import AccessTokensDispatch
import Dispatch
import Foundation
import Synchronization
import TestBudgets
import Testing

@testable import MigrationAfter
@testable import MigrationBefore

/// The server of the sample: a test takes each login request and answers it.
private final class LoginServer: Sendable {
    typealias Answer = @Sendable (Result<Data, any Error>) -> Void

    private let arrivals: AsyncStream<Answer>
    private let arrive: AsyncStream<Answer>.Continuation
    private let count = Mutex(0)

    init() {
        (arrivals, arrive) = AsyncStream.makeStream()
    }

    var requestCount: Int { count.withLock { $0 } }

    func receive(_ answer: @escaping Answer) {
        count.withLock { $0 += 1 }
        arrive.yield(answer)
    }

    func next() async throws -> Answer {
        var iterator = arrivals.makeAsyncIterator()
        return try #require(await iterator.next())
    }

    static func login(_ value: String) -> Result<Data, any Error> {
        let expiry = Date(timeIntervalSinceNow: 3600).timeIntervalSinceReferenceDate
        return .success(Data(#"{"value": "\#(value)", "expiry": \#(expiry)}"#.utf8))
    }
}

/// The sample of the migration guide: the same ten calls, before and after.
@Suite(.timeLimit(.minutes(10)), .inRealTime) @MainActor struct `The migrated sample` {
    private let server = LoginServer()

    private func oldService() -> MigrationBefore.AccessTokenService {
        let server = server
        // The old app's handlers must not be `@Sendable`, but the server's are.
        let network: MigrationBefore.Network = { handler in
            nonisolated(unsafe) let handler = handler  // called once, and on the main queue next
            server.receive { unsafe handler($0) }
        }
        return MigrationBefore.App(network: network).service
    }

    private func newApp() -> MigrationAfter.App {
        let server = server
        return MigrationAfter.App { server.receive($0) }
    }

    @Test func `before the migration, concurrent callers share one login`() async throws {
        let service = oldService()
        let list = MigrationBefore.MovieListScreen(service: service), again = MigrationBefore.MovieListScreen(service: service)
        let movie = MigrationBefore.MovieScreen(service: service), search = MigrationBefore.SearchScreen(service: service)
        let profile = MigrationBefore.ProfileScreen(service: service)
        let answers = GuideLog()
        list.appear()
        again.refresh()
        movie.appear()
        search.search("swift")
        profile.appear()
        MigrationBefore.Uploader(service: service).upload("poster") { answers.add($0) }
        MigrationBefore.Prefetcher(service: service).prefetch { answers.add("prefetched: \($0)") }
        let answer = try await server.next()
        await withCheckedContinuation { done in
            movie.showCast { done.resume() }
            answer(LoginServer.login("abc"))
        }
        #expect(list.text == "movies with abc" && again.text == "fresh movies with abc" && profile.name == "user of abc")
        #expect(movie.lines == ["movie with abc", "cast with abc"] && search.found == ["swift": "abc"])
        #expect(answers.lines == ["poster with abc", "prefetched: true"] && server.requestCount == 1)
        profile.rename("Anna")
        await withCheckedContinuation { done in service.retrieveToken { _ in done.resume() } }
        #expect(profile.name == "Anna of abc")
    }

    @Test func `after the migration, the same callers share one login, with handlers or async`() async throws {
        let app = newApp()
        let (tokens, service) = (app.tokens, app.service)
        let list = MigrationAfter.MovieListScreen(service: service), again = MigrationAfter.MovieListScreen(service: service)
        let movie = MigrationAfter.MovieScreen(service: service), search = MigrationAfter.SearchScreen(service: service)
        let profile = MigrationAfter.ProfileScreen(tokens: tokens)
        list.appear()
        again.refresh()
        movie.appear()
        search.search("swift")
        async let appearance: Void = profile.appear()
        async let upload = MigrationAfter.Uploader(tokens: tokens).upload("poster")
        async let isPrefetched = MigrationAfter.Prefetcher(tokens: tokens).prefetch()
        let answer = try await server.next()
        await withCheckedContinuation { done in
            movie.showCast { done.resume() }
            answer(LoginServer.login("abc"))
        }
        await appearance
        #expect(list.text == "movies with abc" && again.text == "fresh movies with abc" && profile.name == "user of abc")
        #expect(movie.lines == ["movie with abc", "cast with abc"] && search.found == ["swift": "abc"])
        #expect(await upload == "poster with abc")
        #expect(await isPrefetched && server.requestCount == 1)
        await profile.rename("Anna")
        #expect(profile.name == "Anna of abc")
    }

    @Test func `before the migration, a login that ends after the sign-out signs the user in again`() async throws {
        let service = oldService()
        service.retrieveToken { _ in }
        let answer = try await server.next()
        MigrationBefore.ProfileScreen(service: service).signOut()
        answer(LoginServer.login("Anna's"))
        let token = try await withCheckedThrowingContinuation { later in
            service.retrieveToken { later.resume(with: $0.map(\.value)) }
        }
        #expect(token == "Anna's")
    }

    @Test func `after the migration, a login that ends after the sign-out leaves the user signed out`() async throws {
        let tokens = newApp().tokens
        let first = Task { try await tokens.retrieveToken() }
        let answer = try await server.next()
        await MigrationAfter.ProfileScreen(tokens: tokens).signOut()
        answer(LoginServer.login("Anna's"))
        await #expect(throws: TokenServiceError.self) { try await first.value }
        #expect(tokens.cachedToken == nil)
    }

    @Test func `after the migration, handlers learn of a sign-out on the main actor`() async throws {
        let app = newApp()
        let (tokens, service) = (app.tokens, app.service)
        await tokens.replace(with: AccessToken("abc"))
        await withCheckedContinuation { done in service.signOut { done.resume() } }
        #expect(tokens.cachedToken == nil)
    }

    @Test func `an expiration date becomes a lifetime`() async throws {
        let tokens = newApp().tokens
        let load = Task { try await tokens.retrieveToken() }
        let answer = try await server.next()
        answer(LoginServer.login("abc"))
        let lifetime = try #require(try await load.value.lifetime)
        #expect(lifetime > .seconds(3000) && lifetime <= .seconds(3600))
    }

    @Test func `the guide counts the sample's lines and call sites`() throws {
        let guide = try String(
            contentsOf: LinkTests.root.appending(path: "Sources/AccessTokens/AccessTokens.docc/MigratingFromCallbacks.md"),
            encoding: .utf8)
        func lines(_ file: String) throws -> [String] {
            let path = LinkTests.root.appending(path: "Tests/Documents/Migration/\(file)")
            return try String(contentsOf: path, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
                .dropLast().map(String.init)
        }
        let (old, new) = (try lines("Before/AccessTokenService.swift").count, try lines("After/AccessTokenService.swift").count)
        #expect(guide.contains("\(old) lines with the token and the queue become \(new) on top of the package"))
        for row in guide.matches(of: /\| `(\w+\.swift)` \| (\d+) \|/) {
            let calls = try lines("Before/\(row.1)").filter { $0.contains(/service\.(retrieveToken|signOut)/) }
            #expect(calls.count == Int(row.2), "\(row.1)")
        }
    }

    @Test func `the screens' file is the same before and after the migration`() throws {
        func source(_ version: String) throws -> String {
            let path = "Tests/Documents/Migration/\(version)/MovieScreens.swift"
            return try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
        }
        #expect(try source("Before") == source("After"))
    }
}
