import AccessTokens
import AccessTokensTesting
import DataLoading
import Dispatch
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An object that signals its release.
private final class Luggage: NSObject, URLSessionDelegate {
    private let released: AsyncStream<Void>.Continuation

    init(_ released: AsyncStream<Void>.Continuation) { self.released = released }

    deinit { released.yield() }
}

/// The calls of one loader's handlers; used only on its queue.
private final class Screen: Sendable {
    private let state = Lock((isClosed: false, lateCalls: 0))

    func close() { state.withLock { $0.isClosed = true } }
    func called() { state.withLock { if $0.isClosed { $0.lateCalls += 1 } } }
    var lateCalls: Int { state.withLock { $0.lateCalls } }
}

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct ReleaseTests {
    /// Each loader is released when a certain number of requests has arrived: before, while or after its answers arrive.
    ///
    /// The server refuses some tokens, so that some are released between the refusal and the second attempt.
    @Test func `loaders released under load leave nothing behind and call no handler`() async throws {
        let (rounds, requests) = (150, 8)
        let count = Lock(0)
        let revoking = Lock<@Sendable () -> Void>({})
        // A request arrives, or ends without having arrived: on a machine that stalls for a while its time limit may pass.
        let (events, event) = AsyncStream.makeStream(of: Void.self)
        let server = try ResourceServer { arrival in
            event.yield()
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number % 40 == 0 { revoking.withLock { $0 }() }
            return switch number % 7 {
            case 0: .unfinished("")
            case 1: ResourceServer.status(302, "Location: /elsewhere\r\n")
            case 2: ResourceServer.status(401, "WWW-Authenticate: Basic realm=\"x\"\r\n")
            case 3: .reset("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf")
            default: ResourceServer.ok(arrival.path)
            }
        }
        revoking.withLock { $0 = { [server = server.authorizationServer] in server.revokeAll() } }
        let (released, continuation) = AsyncStream.makeStream(of: Void.self)
        let factory = try server.factory()
        var progress = events.makeAsyncIterator()
        var lateCalls = 0
        for round in 1...rounds {
            let queue = DispatchQueue(label: "screen")
            let screen = Screen()
            var loader: DataLoader? = factory.makeLoader(queue: queue)
            for number in 1...requests {
                let luggage = Luggage(continuation)
                loader?.perform(Request(url: server.url("\(number)"))) { _ in
                    withExtendedLifetime(luggage) { screen.called() }
                    event.yield()
                }
            }
            for _ in 0..<(round % requests) { _ = await progress.next() }
            queue.sync {
                screen.close()
                loader = nil
            }
            lateCalls += screen.lateCalls
        }
        var releases = released.makeAsyncIterator()
        for _ in 1...(rounds * requests) { _ = await releases.next() }
        #expect(lateCalls == 0)
    }

    @Test func `a loader keeps nothing of a finished request`() async throws {
        let server = try ResourceServer()
        let (released, continuation) = AsyncStream.makeStream(of: Void.self)
        let loader = try server.loader()
        for way in ["answer", "cancel", "handler"] {
            let luggage = Luggage(continuation)
            // The request, and so its body's opening, lives as long as the running request.
            let body = Request.Body.stream(isReplayable: true) {
                withExtendedLifetime(luggage) { InputStream(data: Data("body".utf8)) }
            }
            let request = Request(url: server.url, method: "POST", body: body)
            switch way {
            case "answer": _ = try await loader.perform(request)
            case "cancel": loader.start(request).cancel()
            default: loader.perform(request) { _ in }
            }
        }
        var releases = released.makeAsyncIterator()
        for _ in 1...3 { _ = await releases.next() }
        #expect(try await loader.perform(Request(url: server.url)).status == 200, "the loader is still there")
    }

    @Test func `the last loader's release releases the session`() async throws {
        let server = try ResourceServer()
        let (released, continuation) = AsyncStream.makeStream(of: Void.self)
        var factory: DataLoaderFactory? = try {
            let session = URLSession(configuration: .ephemeral, delegate: Luggage(continuation), delegateQueue: nil)
            defer { session.finishTasksAndInvalidate() }
            return try server.factory(session: session)
        }()
        var loader = factory?.makeLoader()
        factory = nil
        #expect(try await loader?.perform(Request(url: server.url)).status == 200, "a loader needs no factory")
        loader = nil
        #expect(await released.first { true } != nil)
    }

    @Test func `a loader may be released while its request waits for a token`() async throws {
        let server = try ResourceServer()
        let tokens = ScriptedLoader()
        let factory = DataLoaderFactory(
            tokens: try OriginTokens(TokenService(environment: .init(clock: ManualClock()), loader: tokens), for: [server.url]))
        var loader: DataLoader? = factory.makeLoader()
        let running = try #require(loader).start(Request(url: server.url))
        let call = try await tokens.nextCall()
        loader = nil
        await #expect(throws: CancellationError.self) { try await running.response() }
        call.succeed(with: AccessToken("late"))
        #expect(server.arrivals.all.isEmpty)
    }
}
