import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Dispatch
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

// “Migrating from completion handlers”, run. `GuideTests` holds the page to this file.

private struct Login: Decodable {
    let token: String
    let seconds: Int
}

private struct LoginAPI: AccessTokenLoader {
    let session: URLSession
    let request: URLRequest

    func load(then handler: @escaping Handler) {
        session.dataTask(with: request) { data, _, error in
            let result = Result<AccessToken, any Error> {
                guard let data else { throw error ?? URLError(.unknown) }
                let login = try JSONDecoder().decode(Login.self, from: data)
                return AccessToken(
                    login.token, lifetime: .seconds(login.seconds))
            }
            handler(result)
        }.resume()
    }
}

private struct OldScreen {
    let service: AccessTokenService
    let log: GuideLog

    func load(then finish: @escaping @Sendable () -> Void) {
        service.retrieveToken { [log] result in
            switch result {
            case .success(let token): log.add("old screen \(token.value)")
            case .failure(let error): log.add("old screen \(error)")
            }
            finish()
        }
    }

    func signOut(then handler: @escaping @Sendable () -> Void) {
        service.reset { change in
            if let failure = change.storeFailure {
                self.log.add("the store still has the token: \(failure)")
            }
            handler()
        }
    }
}

private struct NewScreen {
    let tokens: TokenService
    let log: GuideLog

    func load() async throws {
        let token = try await tokens.retrieveToken()
        log.add("new screen \(token.value)")
    }
}

/// Waits for a handler without blocking a thread.
private func finished(_ start: (@escaping @Sendable () -> Void) -> Void) async {
    await withCheckedContinuation { continuation in start { continuation.resume() } }
}

@Suite(.timeLimit(.minutes(10))) struct `Migrating from completion handlers` {
    private let log = GuideLog()
    private let host: StubbedHost

    init() throws {
        host = try StubbedHost { _ in StubbedHost.Answer(body: #"{"token": "a", "seconds": 3600}"#) }
    }

    @Test func `the first step changes one line`() async {
        let (session, request) = (host.session, URLRequest(url: host.url))
        let service = AccessTokenService(
            loader: LoginAPI(session: session, request: request))
        await finished { OldScreen(service: service, log: log).load(then: $0) }
        #expect(log.lines == ["old screen a"])
    }

    @Test func `both worlds share one token and one load`() async throws {
        let (session, request, queue) = (host.session, URLRequest(url: host.url), DispatchQueue(label: "test"))
        let login = LoginAPI(session: session, request: request)
        let tokens = TokenService(loader: CallbackTokenLoader(login))
        let service = AccessTokenService(service: tokens, queue: queue)
        async let new: Void = NewScreen(tokens: tokens, log: log).load()
        await finished { OldScreen(service: service, log: log).load(then: $0) }
        try await new
        #expect(log.lines.sorted() == ["new screen a", "old screen a"] && host.arrivals.count == 1)
        await finished { OldScreen(service: service, log: log).signOut(then: $0) }
        #expect(tokens.cachedToken == nil && log.lines.count == 2)
    }

    @Test func `a service that was made for handlers has a door for async callers too`() async throws {
        let service = AccessTokenService(loader: LoginAPI(session: host.session, request: URLRequest(url: host.url)))
        try await NewScreen(tokens: service.service, log: log).load()
        #expect(log.lines == ["new screen a"])
    }

    @Test func `a call with a limit is answered in time`() async throws {
        let answers = log
        let clock = ManualClock(), loader = ScriptedLoader()
        let tokens = TokenService(environment: .init(clock: clock), loader: loader)
        let service = AccessTokenService(service: tokens, queue: DispatchQueue(label: "test"))
        service.retrieveToken { _ in answers.add("in its turn") }
        let call = try await loader.nextCall()
        service.retrieveToken(within: .seconds(2)) { result in
            answers.add((try? result.get())?.value ?? "try again later")
        }
        await withCheckedContinuation { answered in
            service.retrieveToken(within: .seconds(2)) { _ in answered.resume() }
            clock.advance(by: .seconds(2))
        }
        #expect(answers.lines == ["try again later"])
        await withCheckedContinuation { answered in
            service.retrieveToken { _ in answered.resume() }
            call.succeed(with: AccessToken("abc"))
        }
        #expect(answers.lines == ["try again later", "in its turn"])
    }

    @Test func `queue.sync waits for a hit`() async {
        let answers = log
        let tokens = TokenService(loader: ScriptedLoader())
        await tokens.replace(with: AccessToken("abc", lifetime: .seconds(3600)))
        let queue = DispatchQueue(label: "test")
        let service = AccessTokenService(service: tokens, queue: queue)
        service.retrieveToken { result in
            answers.add((try? result.get())?.value ?? "error")
        }
        queue.sync {}
        #expect(answers.lines == ["abc"])
    }

    @Test func `queue.sync does not wait for a miss`() async throws {
        let answers = log
        let loader = ScriptedLoader()
        let queue = DispatchQueue(label: "test")
        let service = AccessTokenService(loader: loader, queue: queue)
        service.retrieveToken { result in
            answers.add((try? result.get())?.value ?? "error")
        }
        queue.sync {}
        #expect(answers.lines == [])
        let call = try await loader.nextCall()
        await withCheckedContinuation { answered in
            service.retrieveToken { _ in answered.resume() }
            call.succeed(with: AccessToken("abc"))
        }
        #expect(answers.lines == ["abc"])
    }
}
