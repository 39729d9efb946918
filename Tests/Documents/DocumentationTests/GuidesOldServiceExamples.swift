import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Dispatch
import Foundation
import TestBudgets
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// The sections of “Migrating from completion handlers” about what old services also do, run. `GuideTests` compares the page with
// this file.

// MARK: A loader with a refresh token

/// An app's own networking.
private struct LoginServer: Sendable {
    struct Answer: Sendable {
        let access: String, expiresIn: Int, refresh: String?
    }

    enum Problem: Error {
        case invalidGrant, offline
    }

    typealias Handler = @Sendable (Result<Answer, any Error>) -> Void

    let log: GuideLog
    let answers: @Sendable (String) -> Result<Answer, any Error>

    func refresh(_ refreshToken: String, then handler: @escaping Handler) {
        log.add("refresh \(refreshToken)")
        let answer = answers(refreshToken)
        DispatchQueue.global().async { handler(answer) }
    }
}

private struct SignInNeeded: TokenLoadFailure {
    let remedy = TokenServiceError.Remedy.signIn
}

private struct SessionLoader: CallbackTokenLoader {
    let server: LoginServer

    func load(replacing previous: AccessToken?, then handler: @escaping Handler) {
        guard let refreshToken = previous?.refreshToken else {
            return handler(.failure(SignInNeeded()))
        }
        server.refresh(refreshToken) { result in
            switch result {
            case .success(let answer):
                let token = AccessToken(
                    answer.access, lifetime: .seconds(answer.expiresIn),
                    refreshToken: answer.refresh ?? refreshToken)
                handler(.success(token))
            case .failure(LoginServer.Problem.invalidGrant):
                handler(.failure(SignInNeeded()))
            case .failure(let error):
                handler(.failure(error))
            }
        }
    }
}

// MARK: Interceptors

private struct NoTokenYet: Error {}

private struct TokenInterceptor {
    let service: AccessTokenService

    func adapt(_ request: URLRequest) throws -> URLRequest {
        guard let token = service.service.cachedToken else { throw NoTokenYet() }
        var request = request
        request.setValue("Bearer \(token.value)", forHTTPHeaderField: "Authorization")
        return request
    }

    func retry(after error: any Error, then handler: @escaping @Sendable (_ isSentAgain: Bool) -> Void) {
        guard error is NoTokenYet else { return handler(false) }
        service.retrieveToken { result in
            handler((try? result.get()) != nil)
        }
    }
}

// MARK: Promises and publishers

private struct Disposable: Sendable {
    let dispose: @Sendable () -> Void
}

private struct Observable<Value: Sendable>: Sendable {
    typealias Observer = @Sendable (Result<Value, any Error>) -> Void

    let subscribe: @Sendable (@escaping Observer) -> Disposable
}

extension AccessTokenService {
    fileprivate var token: Observable<AccessToken> {
        Observable { observer in
            let call = self.retrieveToken(then: observer)
            return Disposable { call.cancel() }
        }
    }
}

// MARK: Screens

@MainActor private final class MovieScreen {
    var text = ""
    private let service: AccessTokenService
    private var call: AccessTokenService.Call?

    init(service: AccessTokenService) {
        self.service = service
    }

    func appear() {
        call = service.retrieveToken { result in
            MainActor.assumeIsolated {
                self.text = "movies with \((try? result.get())?.value ?? "no token")"
            }
        }
    }

    func disappear() {
        call?.cancel()
    }
}

private enum Screen { case signIn, locked, movies }

private func chooseScreen(_ service: AccessTokenService, show: @escaping @Sendable (Screen) -> Void) {
    service.signInState { state in
        switch state.code {
        case .signedOut: show(.signIn)
        case .unknown: show(.locked)
        default: show(.movies)
        }
    }
}

@Suite(.timeLimit(.minutes(10)), .inRealTime) struct `What old services also do` {
    private let log = GuideLog()
    private let queue = DispatchQueue(label: "test")

    private func answer(_ service: AccessTokenService) async -> String {
        await withCheckedContinuation { answered in
            service.retrieveToken { answered.resume(returning: (try? $0.get())?.value ?? "error") }
        }
    }

    private func token(_ value: String, by refreshToken: String = "r1") -> AccessToken {
        AccessToken(value, lifetime: .seconds(3600), refreshToken: refreshToken)
    }

    @Test func `a loader with a refresh token works with a vault as its store`() async throws {
        let clock = ManualClock(), vault = Vault()
        let server = LoginServer(log: log) { _ in .success(.init(access: "b", expiresIn: 3_600, refresh: "r2")) }
        let environment = TokenService.Environment(clock: clock)
        let tokens = TokenService(
            store: VaultTokenStore(vault: vault), environment: environment, loader: SessionLoader(server: server).tokenLoader)
        let service = AccessTokenService(service: tokens, queue: queue)
        #expect(await answer(service) == "error" && log.lines.isEmpty)
        service.retryNow()
        service.replace(with: token("a"))
        #expect(await answer(service) == "a")
        clock.advance(by: .seconds(3_600))
        #expect(await answer(service) == "b" && log.lines == ["refresh r1"])
        #expect(try await VaultTokenStore(vault: vault).load()?.token.refreshToken == "r2")
        service.reset()
        #expect(await answer(service) == "error")
        #expect(try await vault.read() == nil && log.lines == ["refresh r1"])
    }

    @Test(arguments: [(LoginServer.Problem.invalidGrant, TokenServiceError.Remedy.signIn), (.offline, .retry)])
    private func `a loader tells a refused grant from a network failure`(
        problem: LoginServer.Problem, remedy: TokenServiceError.Remedy
    ) async throws {
        let clock = ManualClock(), server = LoginServer(log: log) { _ in .failure(problem) }
        let tokens = TokenService(environment: .init(clock: clock), loader: SessionLoader(server: server).tokenLoader)
        await tokens.replace(with: token("a"))
        clock.advance(by: .seconds(3_600))
        let error = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
        #expect(error?.remedy == remedy)
    }

    @Test func `an interceptor never blocks, and its request is sent again when there is a token`() async throws {
        let loader = ScriptedLoader(), service = AccessTokenService(loader: loader, queue: queue)
        let interceptor = TokenInterceptor(service: service)
        let request = URLRequest(url: try #require(URL(string: "https://api.example/movies")))
        let error = #expect(throws: NoTokenYet.self) { try interceptor.adapt(request) }
        let isSentAgain = await withCheckedContinuation { answered in
            interceptor.retry(after: error ?? NoTokenYet()) { answered.resume(returning: $0) }
            Task { try await loader.nextCall().succeed(with: AccessToken("abc", lifetime: .seconds(60))) }
        }
        #expect(isSentAgain)
        #expect(try interceptor.adapt(request).value(forHTTPHeaderField: "Authorization") == "Bearer abc")
    }

    @Test func `an observable's disposal cancels the call`() async throws {
        let answers = log, loader = ScriptedLoader(), service = AccessTokenService(loader: loader, queue: queue)
        let subscription = service.token.subscribe { _ in answers.add("disposed of") }
        let call = try await loader.nextCall()
        subscription.dispose()
        call.succeed(with: AccessToken("abc"))
        #expect(await answer(service) == "abc" && answers.lines.isEmpty)
    }

    @Test func `two forced reloads that name the same token cause one load`() async throws {
        let loader = ScriptedLoader(), service = AccessTokenService(loader: loader, queue: queue)
        service.replace(with: token("old"))
        #expect(await answer(service) == "old")
        let old = token("old"), answers = log
        for number in 1...2 {
            service.retrieveToken(insteadOf: old) { result in
                answers.add("\(number) \((try? result.get())?.value ?? "error")")
            }
        }
        try await loader.nextCall().succeed(with: token("new"))
        #expect(await answer(service) == "new")
        #expect(answers.lines == ["1 new", "2 new"] && loader.loadCount == 1)
    }

    @Test @MainActor func `a closed screen is released`() async throws {
        let loader = ScriptedLoader(), service = AccessTokenService(loader: loader, queue: .main)
        weak var closed: MovieScreen?
        do {
            let screen = MovieScreen(service: service)
            closed = screen
            screen.appear()
            screen.disappear()
        }
        #expect(closed == nil)
        let screen = MovieScreen(service: service)
        screen.appear()
        try await loader.nextCall().succeed(with: AccessToken("abc"))
        _ = await answer(service)
        #expect(screen.text == "movies with abc")
    }

    @Test func `ten refusals of a revoked session post one event`() async throws {
        let server = LoginServer(log: log) { _ in .failure(LoginServer.Problem.invalidGrant) }
        let tokens = TokenService(loader: SessionLoader(server: server).tokenLoader), posts = log
        let service = AccessTokenService(service: tokens, queue: queue)
        service.replace(with: token("a"))
        _ = await answer(service)
        @Sendable func post(_ name: String) { posts.add(name) }
        let events = tokens.events()
        let listener = Task {
            for await event in events {
                switch event.name {
                case .loadSucceeded, .restored, .replaced: post("new token")
                case _ where event.error?.remedy == .signIn: post("signed out by the server")
                case .reset: post("signed out")
                default: break
                }
            }
        }
        for _ in 1...10 {
            service.retrieveToken(insteadOf: token("a")) { _ in }
        }
        #expect(await answer(service) == "error")
        await withCheckedContinuation { done in service.reset { _ in done.resume() } }
        while posts.lines.last != "signed out" { await Task.yield() }
        listener.cancel()
        #expect(posts.lines == ["refresh r1", "signed out by the server", "signed out"])
    }

    @Test func `the sign-in state at launch is answered without a load`() async throws {
        let vault = Vault(), store = VaultTokenStore(vault: vault), loader = ScriptedLoader()
        let shown = log
        for (name, screen) in [("empty", Screen.signIn), ("full", .movies), ("locked", .locked)] {
            if name == "full" { try await store.save(StoredToken(token("a"), received: .distantPast)) }
            if name == "locked" { await vault.lock(true) }
            let service = AccessTokenService(loader: loader, queue: queue, store: store)
            await withCheckedContinuation { answered in
                chooseScreen(service) {
                    shown.add("\($0 == screen)")
                    answered.resume()
                }
            }
        }
        #expect(shown.lines == ["true", "true", "true"] && loader.loadCount == 0)
    }

    @Test func `the line after a sign-out sees nothing from before it`() async throws {
        let tokens = TokenService(loader: ScriptedLoader())
        let service = AccessTokenService(service: tokens, queue: queue)
        service.replace(with: token("a"))
        #expect(await answer(service) == "a" && tokens.cachedSignInState.code == .validToken)
        service.reset()
        #expect(tokens.cachedToken == nil && tokens.cachedSignInState.code == .signedOut)
    }

    @Test func `a handler that calls again at once causes two loads, and then gets the cached error`() async throws {
        let errors = log
        let service = AccessTokenService(service: TokenService { _ in throw ScriptedFailure() }, queue: queue)
        for number in 1...3 {
            await withCheckedContinuation { answered in
                service.retrieveToken { result in
                    if case .failure(let error as TokenServiceError) = result {
                        errors.add("\(number) \(error.retryAt.map { $0 > Date() } ?? false)")
                    }
                    answered.resume()
                }
            }
        }
        #expect(errors.lines == ["1 false", "2 true", "3 true"])
    }
}
