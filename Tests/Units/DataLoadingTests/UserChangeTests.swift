import AccessTokens
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import DataLoading

/// Guarantee 43: a request that is under way while its user signs out and another signs in carries no token of the other.
@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct UserChangeTests {
    static let anna = AccessToken("anna", lifetime: .seconds(3600)), ben = AccessToken("ben", lifetime: .seconds(3600))

    /// Starts Anna's request, changes the user before the server answers, and then lets the server answer.
    private func changeUser(
        during path: String, answering answer: @escaping @Sendable (ResourceServer.Arrival) -> LoopbackServer.Reply,
        _ change: @Sendable (TokenService) async -> Void
    ) async throws -> (result: Result<Response, any Error>, arrivals: [ResourceServer.Arrival], tokens: TokenService) {
        let gate = Gate(), arrivals = ResourceServer.Arrivals()
        let server = try LoopbackServer { text in
            let arrival = ResourceServer.Arrival(text: text)
            arrivals.append(arrival)
            if arrival.path == path { gate.wait() }
            return answer(arrival)
        }
        let tokens = TokenService { _ in AccessToken("anna again", lifetime: .seconds(3600)) }
        await tokens.replace(with: Self.anna)
        let loader = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [server.url])).makeLoader()
        let url = server.url.deletingLastPathComponent().appending(path: String(path.dropFirst()))
        let request = loader.start(Request(url: url, method: "POST", body: .data(Data("Anna's".utf8))))
        _ = await server.requests.first { _ in true }
        await change(tokens)
        gate.open()
        do {
            return (.success(try await request.response()), arrivals.all, tokens)
        } catch {
            return (.failure(error), arrivals.all, tokens)
        }
    }

    @Test func `43: a refused request is not sent again as the next user`() async throws {
        let (result, arrivals, tokens) = try await changeUser(during: "/a") { _ in
            .bytes(ResourceServer.invalidToken)
        } _: { tokens in
            _ = await tokens.reset()
            await tokens.replace(with: Self.ben)
        }
        let error = #expect(throws: TokenServiceError.self) { try result.get() }
        #expect(error?.code == .reset)
        #expect(arrivals.map(\.token) == ["anna"])
        #expect(tokens.cachedToken == Self.ben)
    }

    @Test(arguments: [true, false])
    func `43: a request started before a sign-out is not sent as the next user, whenever its work begins`(
        decodes: Bool
    ) async throws {
        let arrivals = ResourceServer.Arrivals(), isStarted = Lock(false), hasChanged = Gate()
        let server = try LoopbackServer { text in
            arrivals.append(ResourceServer.Arrival(text: text))
            return ResourceServer.ok("1")
        }
        let tokens = TokenService { _ in AccessToken("anna again", lifetime: .seconds(3600)) }
        await tokens.replace(with: Self.anna)
        let bound = try OriginTokens(keys: [server.url: "api"]) { _ in
            if isStarted.withLock({ $0 }) { hasChanged.wait() }
            return tokens
        }
        let loader = DataLoaderFactory(tokens: bound).makeLoader()
        let request = Request(url: server.url, method: "POST", body: .data(Data("Anna's".utf8)))
        let result: Task<Void, any Error>
        if decodes {
            result = Task.immediate { _ = try await loader.perform(request, as: Int.self) }
        } else {
            let started = loader.start(request)
            result = Task { _ = try await started.response() }
        }
        isStarted.withLock { $0 = true }
        _ = await tokens.reset()
        await tokens.replace(with: Self.ben)
        hasChanged.open()
        // The request may have begun in time.
        if case .failure(let error) = await result.result { #expect((error as? TokenServiceError)?.code == .reset) }
        #expect(arrivals.all.allSatisfy { $0.token == "anna" })
    }

    @Test(arguments: [true, false])
    func `43: a request that has yet to ask for its token gets the same user's next one, or the reset error`(
        signsOut: Bool
    ) async throws {
        let arrivals = ResourceServer.Arrivals()
        let server = try LoopbackServer { text in
            arrivals.append(ResourceServer.Arrival(text: text))
            return ResourceServer.ok("1")
        }
        let tokens = TokenService { _ in AccessToken("anna again", lifetime: .seconds(3600)) }
        await tokens.replace(with: Self.anna)
        let runner = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [server.url])).runner
        let call = try runner.call(Request(url: server.url))
        if signsOut { _ = await tokens.reset() }
        await tokens.replace(with: signsOut ? Self.ben : AccessToken("annas-next", lifetime: .seconds(3600)))
        var code: TokenServiceError.Code?
        do { _ = try await runner.response(to: call) { _ in } } catch let error as TokenServiceError { code = error.code }
        #expect(code == (signsOut ? .reset : nil))
        #expect(arrivals.all.map(\.token) == (signsOut ? [] : ["annas-next"]))
    }

    @Test func `43: a redirected request keeps its user`() async throws {
        let (result, arrivals, _) = try await changeUser(during: "/a") { arrival in
            arrival.path == "/a" ? ResourceServer.status(307, "Location: /b\r\n") : ResourceServer.ok("done")
        } _: { tokens in
            _ = await tokens.reset()
            await tokens.replace(with: Self.ben)
        }
        #expect(try result.get().status == 200)
        #expect(arrivals.map(\.token) == ["anna", "anna"])
    }

    @Test func `a request refused while its user signs in again goes on with that user's next token`() async throws {
        let next = AccessToken("annas-next", lifetime: .seconds(3600))
        let (result, arrivals, _) = try await changeUser(during: "/a") { arrival in
            arrival.token == "anna" ? .bytes(ResourceServer.invalidToken) : ResourceServer.ok("done")
        } _: { tokens in
            await tokens.replace(with: next)
        }
        #expect(try result.get().status == 200)
        #expect(arrivals.map(\.token) == ["anna", "annas-next"])
        #expect(arrivals.map(\.body) == ["Anna's", "Anna's"])
    }
}
