import AccessTokens
import AccessTokensTesting
import DataLoading
import Dispatch
import Foundation
import LoopbackServers
import TestBudgets
import Testing

/// An object that a handler retains, and that signals its release.
private final class Luggage: Sendable {
    private let released: AsyncStream<Void>.Continuation

    init(_ released: AsyncStream<Void>.Continuation) { self.released = released }

    deinit { released.yield() }
}

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct CancellationTests {
    let calls = Log<Int>()
    let queue = DispatchQueue(label: "handlers")

    /// A server that takes requests and never answers.
    static func silent() throws -> ResourceServer { try ResourceServer { _ in .unfinished("") } }

    @Test func `a cancelled async caller leaves at once, and its connection ends`() async throws {
        let server = try Self.silent()
        let loader = try server.loader()
        let caller = Task { try await loader.perform(Request(url: server.url)) }
        _ = await server.requests.first { _ in true }
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
        #expect(await server.departures.first { true } != nil)
    }

    @Test func `a caller that is cancelled before it starts sends nothing`() async throws {
        let server = try ResourceServer()
        let loader = try server.loader()
        let caller = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try await loader.perform(Request(url: server.url))
        }
        await #expect(throws: CancellationError.self) { try await caller.value }
        #expect(try await loader.perform(Request(url: server.url("mine"))).status == 200)
        #expect(server.arrivals.all.map(\.path) == ["/mine"])
    }

    @Test func `a cancelled request leaves the others running`() async throws {
        let gate = Gate()
        let server = try ResourceServer { arrival in
            gate.wait()
            return ResourceServer.ok(arrival.path)
        }
        let loader = try server.loader()
        let requests = (1...3).map { loader.start(Request(url: server.url("\($0)"))) }
        requests[1].cancel()
        await #expect(throws: CancellationError.self) { try await requests[1].response() }
        gate.open()
        #expect(try await requests[0].response().status == 200)
        #expect(try await requests[2].response().status == 200)
    }

    @Test func `cancelAll cancels all requests of a loader, but no other loader's and no later ones`() async throws {
        let gate = Gate()
        let server = try ResourceServer { arrival in
            gate.wait()
            return ResourceServer.ok(arrival.path)
        }
        let factory = try server.factory()
        let (mine, other) = (factory.makeLoader(), factory.makeLoader())
        let requests = (1...3).map { mine.start(Request(url: server.url("\($0)"))) }
        let others = other.start(Request(url: server.url("other")))
        mine.cancelAll()
        for running in requests {
            await #expect(throws: CancellationError.self) { try await running.response() }
        }
        gate.open()
        #expect(try await others.response().status == 200)
        #expect(try await mine.perform(Request(url: server.url("later"))).status == 200)
    }

    @Test func `a released loader cancels its requests, closes their connections and calls no handler`() async throws {
        let server = try Self.silent()
        let (released, continuation) = AsyncStream.makeStream(of: Void.self)
        var loader: DataLoader? = try server.factory().makeLoader(queue: queue)
        let requests = (1...5).compactMap { number in
            let luggage = Luggage(continuation)
            return loader?.perform(Request(url: server.url("\(number)"))) { [calls] _ in
                withExtendedLifetime(luggage) { calls.append(number) }
            }
        }
        var arrivals = server.requests.makeAsyncIterator()
        for _ in requests { _ = await arrivals.next() }
        loader = nil
        var (departures, releases) = (server.departures.makeAsyncIterator(), released.makeAsyncIterator())
        for running in requests {
            await #expect(throws: CancellationError.self) { try await running.response() }
            _ = await departures.next()
            _ = await releases.next()
        }
        queue.sync {}
        #expect(calls.entries.isEmpty)
    }

    @Test func `a handler is called once, on the loader's queue`() async throws {
        let server = try ResourceServer()
        let key = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: key, value: true)
        let loader = try server.factory().makeLoader(queue: queue)
        let result = await withCheckedContinuation { continuation in
            loader.perform(Request(url: server.url)) { result in
                #expect(DispatchQueue.getSpecific(key: key) == true)
                continuation.resume(returning: result)
            }
        }
        #expect(try result.get().status == 200)
    }

    // The queue is blocked: the answer has arrived, and the handler waits for its turn.
    @Test(arguments: ["one", "all", "release"])
    func `a cancellation on the queue takes effect before any handler that has not begun`(way: String) async throws {
        let server = try ResourceServer()
        var loader: DataLoader? = try server.factory().makeLoader(queue: queue)
        queue.suspend()
        let running = try #require(loader).perform(Request(url: server.url)) { [calls] _ in calls.append(1) }
        #expect(try await running.response().status == 200)
        switch way {
        case "one": running.cancel()
        case "all": loader?.cancelAll()
        default: loader = nil
        }
        queue.resume()
        queue.sync {}
        #expect(calls.entries.isEmpty)
        #expect(try await running.response().status == 200, "the answer that it has, it keeps")
    }

    @Test func `a handler may call cancelAll and start another request`() async throws {
        let server = try ResourceServer()
        let loader = try server.factory().makeLoader(queue: queue)
        let (outcomes, continuation) = AsyncStream.makeStream(of: Int.self)
        loader.perform(Request(url: server.url)) { _ in
            loader.cancelAll()
            loader.perform(Request(url: server.url)) { result in continuation.yield((try? result.get().status) ?? 0) }
        }
        #expect(await outcomes.first { _ in true } == 200)
    }

    @Test func `a cancelled request that waits for a token leaves the load running for the others`() async throws {
        let server = try ResourceServer()
        let tokens = ScriptedLoader()
        let factory = DataLoaderFactory(
            tokens: try OriginTokens(TokenService(environment: .init(clock: ManualClock()), loader: tokens), for: [server.url]))
        let (closed, open) = (factory.makeLoader(), factory.makeLoader())
        let first = closed.start(Request(url: server.url("closed")))
        let call = try await tokens.nextCall()
        let second = open.start(Request(url: server.url("open")))
        closed.cancelAll()
        await #expect(throws: CancellationError.self) { try await first.response() }
        call.succeed(with: server.authorizationServer.signIn())
        #expect(try await second.response().status == 200)
        #expect(server.arrivals.all.map(\.path) == ["/open"])
    }
}
