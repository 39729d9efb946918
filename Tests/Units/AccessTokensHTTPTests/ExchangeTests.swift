#if canImport(FoundationNetworking)
import Foundation
import FoundationNetworking
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import AccessTokensHTTP

/// An object that signals its release.
final class Belonging: Sendable {
    private let released: AsyncStream<Void>.Continuation

    init(_ released: AsyncStream<Void>.Continuation) { self.released = released }

    deinit { released.yield() }
}

@Suite(.timeLimit(.minutes(10)))
struct `An exchange` {
    static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    /// Sends a `POST` in its own session, which retains the belonging.
    @concurrent private static func post(
        to server: LoopbackServer, keeping belonging: Belonging, within limit: Duration = .seconds(300)
    ) async throws -> TransportResponse {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        var request = URLRequest(url: server.url)
        request.httpMethod = "POST"
        let exchange = Exchange(bodyLimit: 10, limits: TimeLimits(whole: limit))
        NetworkSession(configuration: configuration, challenges: .returnToCaller, keeping: belonging)
            .send(request, as: exchange)
        return try await exchange.answer()
    }

    @Test(arguments: [
        LoopbackServer.Reply.bytes(ok), .bytes("HTTP/1.1 200 OK\r\n\r\nmore than ten bytes"), .bytes("nonsense"),
        .bytes("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"), .unfinished("HTTP/1.1 200 OK\r\n\r\n"),
    ])
    func `ends its session, and releases what that keeps, however it ends`(reply: LoopbackServer.Reply) async throws {
        let server = try LoopbackServer { _ in reply }
        let (released, continuation) = AsyncStream.makeStream(of: Void.self)
        _ = try? await Self.post(to: server, keeping: Belonging(continuation), within: .milliseconds(500))
        #expect(await released.first { true } != nil)
    }

    @Test func `may be cancelled at any moment of its life`() async throws {
        let server = try LoopbackServer(answering: Self.ok)
        let (released, continuation) = AsyncStream.makeStream(of: Void.self)
        let delays = stride(from: 0, to: 2_000, by: .everyday(20, thorough: 5)).map { Duration.microseconds($0) }
        for delay in delays {
            let exchange = Task { try await Self.post(to: server, keeping: Belonging(continuation)) }
            let start = ContinuousClock.now
            while ContinuousClock.now - start < delay { await Task.yield() }
            exchange.cancel()
            _ = await exchange.result
        }
        var releases = released.makeAsyncIterator()
        for _ in delays { _ = await releases.next() }
        #expect(try await Self.post(to: server, keeping: Belonging(continuation)).status == 200)
    }

    @Test(arguments: [(0, false), (10, true)])
    func `that has sent something isn't called unsent, although a host's first address had refused it`(
        count: Int64, isLost: Bool
    ) async throws {
        let exchange = Exchange(bodyLimit: 10, limits: TimeLimits(whole: .seconds(60)))
        exchange.sent(count, of: 10)
        exchange.fail(with: URLError(.cannotConnectToHost), ofBody: true)
        let error = await #expect(throws: TransportError.self) { try await exchange.answer() }
        if case .connectionLost? = error { #expect(isLost) } else { #expect(!isLost) }
    }

    // In its own process, since all sessions of a process wait while Foundation is busy; it takes seconds.
    @Test(.thorough) func `that ends while Foundation makes its task is not sent, and ends its session`() async {
        await #expect(processExitsWith: .success) {
            let hostile = try LoopbackServer { _ in LongHeader.reply }
            let arrivals = Lock(0)
            let server = try LoopbackServer { _ in
                arrivals.withLock { $0 += 1 }
                return .bytes(Self.ok)
            }
            let (released, continuation) = AsyncStream.makeStream(of: Void.self)
            let busy = Task { try await Self.post(to: hostile, keeping: Belonging(AsyncStream.makeStream(of: Void.self).1)) }
            await LongHeader.untilFoundationIsBusy()
            for limit in [Duration.milliseconds(100), .milliseconds(200)] {
                await #expect(throws: TransportError.self) {
                    try await Self.post(to: server, keeping: Belonging(continuation), within: limit)
                }
            }
            #expect(await LongHeader.remainingTime() > .milliseconds(100), "both ended before Foundation was free")
            var releases = released.makeAsyncIterator()
            for _ in 1...2 { _ = await releases.next() }
            #expect(try await Self.post(to: server, keeping: Belonging(continuation)).status == 200)
            #expect(arrivals.withLock { $0 } == 1, "the last one alone was sent")
            _ = await busy.result
        }
    }
}
#endif
