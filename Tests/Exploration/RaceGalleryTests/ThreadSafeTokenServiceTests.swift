import AccessTokens
import AccessTokensTesting
import Dispatch
import RaceGallery
import Testing

@Suite struct `Stage 3, thread-safe` {
    var stage = ThirdStage()

    @Test func `stage 3 starts one load for callers on many threads`() async throws {
        DispatchQueue.concurrentPerform(iterations: 100) { [stage] _ in stage.ask() }
        let call = try await stage.nextCall()
        stage.answer(call, with: AccessToken("a"))
        #expect(stage.answers.tokens == Array(repeating: "a", count: 100))
        #expect(stage.loader.loadCount == 1)
    }

    @Test func `stage 3 calls the handlers on its queue, in the order of the calls`() async throws {
        let order = Log<Int>()
        for caller in 1...5 {
            stage.service?.retrieveToken { [queue = stage.queue] _ in
                dispatchPrecondition(condition: .onQueue(queue))
                order.append(caller)
            }
        }
        let call = try await stage.nextCall()
        stage.answer(call, with: AccessToken("a"))
        #expect(order.entries == [1, 2, 3, 4, 5])
    }

    @Test mutating func `flaw 1 of stage 3: released during a load, it answers no caller`() async throws {
        stage.ask()
        stage.service = nil
        let call = try await stage.nextCall()
        stage.answer(call, with: AccessToken("a"))
        #expect(stage.answers.tokens.isEmpty)
    }

    @Test func `flaw 2 of stage 3: a loader that never answers blocks all later callers`() async throws {
        stage.ask()
        stage.clock.advance(by: .seconds(24 * 3600))
        stage.ask()
        #expect(stage.answers.tokens.isEmpty)
        #expect(stage.loader.loadCount == 1)
    }

    @Test func `flaw 3 of stage 3: a loader that answers twice overwrites the token with its second answer`() async throws {
        stage.ask()
        let call = try await stage.nextCall()
        stage.answer(call, with: AccessToken("first"))
        stage.answer(call, with: AccessToken("second"))
        stage.ask()
        #expect(stage.answers.tokens == ["first", "second"])
    }

    @Test func `flaw 4 of stage 3: a token that the server refuses is handed out again, since no call reports the refusal`()
        throws
    {
        let server = SimulatedAuthorizationServer(clock: stage.clock)
        let service = ThreadSafeTokenService(loader: server.loader, queue: stage.queue, clock: stage.clock)
        for _ in 1...2 {
            service.retrieveToken { [stage] in stage.answers.append($0) }
            // The loader answers on the queue; its answer is enqueued behind this wait, and so is the second call's handler.
            stage.queue.sync {}
            stage.queue.sync {}
            server.revokeAll()
        }
        #expect(stage.answers.tokens == ["access-1", "access-1"])
    }

    @Test func `flaw 5 of stage 3: a sign-out during a load is undone by the load's result`() async throws {
        stage.ask()
        stage.service?.signOut()
        let call = try await stage.nextCall()
        stage.answer(call, with: AccessToken("from before"))
        stage.ask()
        #expect(stage.answers.tokens == ["from before", "from before"])
    }

    @Test func `flaw 6 of stage 3: a token is handed out at the last moment of its life`() async throws {
        stage.ask()
        let call = try await stage.nextCall()
        stage.answer(call, with: AccessToken("a", lifetime: .seconds(60)))
        stage.clock.advance(by: .milliseconds(59_999))
        stage.ask()
        #expect(stage.answers.tokens == ["a", "a"])
    }

    @Test func `flaw 7 of stage 3: a hit waits for the queue`() async throws {
        stage.ask()
        let call = try await stage.nextCall()
        stage.answer(call, with: AccessToken("a"))
        stage.queue.suspend()
        stage.service?.retrieveToken { [stage] in stage.answers.append($0) }
        #expect(stage.answers.tokens == ["a"])
        stage.queue.resume()
        stage.queue.sync {}
        #expect(stage.answers.tokens == ["a", "a"])
    }

    @Test func `flaw 7 of stage 3: at expiry all callers wait for the load`() async throws {
        stage.ask()
        let call = try await stage.nextCall()
        stage.answer(call, with: AccessToken("a", lifetime: .seconds(60)))
        stage.clock.advance(by: .seconds(60))
        for _ in 1...3 { stage.ask() }
        #expect(stage.answers.tokens == ["a"])
        let next = try await stage.nextCall()
        stage.answer(next, with: AccessToken("b"))
        #expect(stage.answers.tokens == ["a", "b", "b", "b"])
    }
}
