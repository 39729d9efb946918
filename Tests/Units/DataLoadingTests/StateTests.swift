import AccessTokens
import AccessTokensTesting
import DataLoading
import Foundation
import LoopbackServers
import Testing

/// The names of the states, in the order in which a reader saw them, without repetitions.
private func names(_ running: StatefulRequest) async -> [String] {
    var names: [String] = []
    for await state in running.states {
        let name =
            switch state {
            case .pending: "pending"
            case .ongoing: "ongoing"
            case .completed(.success): "completed"
            case .completed(.failure): "failed"
            }
        if names.last != name { names.append(name) }
    }
    return names
}

// Not at a high priority, since states are read, not delivered: otherwise the request could end before the reader sees the last
// progress.
@Suite(.timeLimit(.minutes(10)))
struct StateTests {
    @Test func `a request is pending while it waits for a token, then ongoing, then completed`() async throws {
        let gate = Gate()
        let server = try ResourceServer { _ in
            gate.wait()
            return ResourceServer.ok("")
        }
        let tokens = ScriptedLoader()
        let factory = DataLoaderFactory(
            tokens: try OriginTokens(TokenService(environment: .init(clock: ManualClock()), loader: tokens), for: [server.url]))
        let loader = factory.makeLoader()
        let running = loader.start(Request(url: server.url))
        var states = running.states.makeAsyncIterator()
        guard case .pending = await states.next(isolation: #isolation) else {
            Issue.record("it waits for its token")
            return
        }
        try await tokens.nextCall().succeed(with: server.authorizationServer.signIn())
        guard case .ongoing(let progress) = await states.next(isolation: #isolation) else {
            Issue.record("it is on its way")
            return
        }
        #expect(progress.bytesReceived == 0 && progress.bytesToReceive == nil)
        gate.open()
        #expect(try await running.response().status == 200)
        #expect(await names(running) == ["completed"], "a late reader sees the last state")
    }

    @Test func `progress counts what was sent and received, as far as lengths are known`() async throws {
        let answer = String(repeating: "y", count: 3_000_000)
        // The last byte is never sent, so that the reader sees every state before the request ends.
        let server = try ResourceServer { _ in
            .unfinished("HTTP/1.1 200 OK\r\nContent-Length: 3000001\r\n\r\n\(answer)")
        }
        let loader = try server.loader()
        let body = Data(repeating: 0x78, count: 500_000)
        let running = loader.start(Request(url: server.url, method: "POST", body: .data(body)))
        var seen: [StatefulRequest.Progress] = []
        for await case .ongoing(let progress) in running.states {
            seen.append(progress)
            if progress.bytesReceived == 3_000_000 { running.cancel() }
        }
        let last = try #require(seen.last)
        #expect(last.bytesReceived == 3_000_000 && last.bytesToReceive == 3_000_001)
        #expect(last.bytesSent == 500_000 && last.bytesToSend == 500_000)
        #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.bytesReceived <= $1.bytesReceived && $0.bytesSent <= $1.bytesSent })
    }

    @Test func `each performance of a request has states of its own`() async throws {
        let gate = Gate()
        let server = try ResourceServer { _ in
            gate.wait()
            return ResourceServer.ok("")
        }
        let loader = try server.loader()
        let request = Request(url: server.url)
        let (first, second) = (loader.start(request), loader.start(request))
        first.cancel()
        gate.open()
        #expect(await names(first).last == "failed")
        #expect(await names(second).last == "completed")
    }

    @Test func `every reader gets the last state, however many readers there are`() async throws {
        let server = try ResourceServer()
        let loader = try server.loader()
        let running = loader.start(Request(url: server.url))
        await withTaskGroup { group in
            for _ in 1...100 { group.addTask { #expect(await names(running).last == "completed") } }
        }
        #expect(await names(running) == ["completed"], "so does a reader who comes afterwards")
    }

    @Test func `a reader of states that is cancelled stops reading, and the request goes on`() async throws {
        let gate = Gate()
        let server = try ResourceServer { _ in
            gate.wait()
            return ResourceServer.ok("")
        }
        let loader = try server.loader()
        let running = loader.start(Request(url: server.url))
        let reader = Task { try await running.response() }
        _ = await server.requests.first { _ in true }
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
        gate.open()
        #expect(try await running.response().status == 200)
    }
}
