import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Dispatch
import Foundation
import TestBudgets
import Testing

// “Migrating from completion handlers”, run. `GuideTests` compares the page with this file.

/// The app's file of names, for callers that aren't on an actor.
private enum OneModule {
    typealias AccessToken = AccessTokens.AccessToken
    typealias AccessTokenService = AccessTokensDispatch.AccessTokenService
}

extension AccessTokensDispatch.AccessTokenService {
    func signOut(then handler: @escaping @Sendable () -> Void) {
        reset { _ in handler() }
    }
}

@Suite(.timeLimit(.minutes(10)), .inRealTime) struct `Migrating from completion handlers` {
    private let log = GuideLog()

    @Test func `two type aliases in one file stand for the package's types`() {
        let service = OneModule.AccessTokenService(loader: ScriptedLoader())
        #expect(type(of: service) == AccessTokenService.self && OneModule.AccessToken("abc") == AccessToken("abc"))
    }

    @Test func `an old service's sign-out keeps its name, and takes effect`() async throws {
        let tokens = TokenService(loader: ScriptedLoader())
        await tokens.replace(with: AccessToken("abc", lifetime: .seconds(3600)))
        let service = OneModule.AccessTokenService(service: tokens, queue: DispatchQueue(label: "test"))
        await withCheckedContinuation { done in service.signOut { done.resume() } }
        #expect(tokens.cachedToken == nil)
    }

    @Test func `a call with a limit is answered when the limit passes`() async throws {
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
