import AccessTokens
import GRPCCore
import GRPCNIOTransportHTTP2Posix
import Synchronization
import Testing

@testable import OverGRPC

/// Calls over HTTP/2 to a server that refuses all tokens but those that the test allows.
@Suite struct GRPCTests {
    @Test(arguments: [1, 3])
    func `a call that is refused before it has streamed anything is made once more, and never a third time`(answers: Int)
        async throws
    {
        let echo = Echo(allowing: ["Bearer 2", "Bearer 3"], answers: answers), tokens = tokens()
        #expect(try await echo.call(tokens, sending: [[7]]) == Array(repeating: 7, count: answers))
        #expect(echo.calls == ["Bearer 1", "Bearer 2"] && tokens.cachedToken?.value == "2")
        #expect(try await echo.call(tokens, sending: [[8]]).count == answers && echo.calls.count == 3)
        let strict = Echo(allowing: []), others = self.tokens()
        let error = await #expect(throws: RPCError.self) { try await strict.call(others, sending: [[1]]) }
        #expect(error?.code == .unauthenticated && strict.calls == ["Bearer 1", "Bearer 2"] && others.cachedToken == nil)
    }

    @Test func `a refused stream of messages isn't sent again, and the next call gets another token`() async throws {
        let echo = Echo(allowing: ["Bearer 2"], readsFirst: true), tokens = tokens()
        let error = await #expect(throws: RPCError.self) { try await echo.call(tokens, sending: [[1], [2]]) }
        #expect(error?.code == .unauthenticated && echo.calls == ["Bearer 1"])
        #expect(try await echo.call(tokens, sending: [[3], [4]]) == [3, 4])
    }

    @Test func `a call isn't made again once it has brought a message`() async throws {
        let echo = Echo(allowing: ["Bearer 2"], refusesAtEnd: true), tokens = tokens()
        await #expect(throws: RPCError.self) { try await echo.call(tokens, sending: [[1]]) }
        #expect(echo.calls == ["Bearer 1"] && tokens.cachedToken == nil)
    }

    @Test func `two calls in one closure aren't made again, and a call without a token goes out as it is`() async throws {
        let echo = Echo(allowing: ["Bearer 2"]), tokens = tokens()
        await #expect(throws: RPCError.self) {
            try await echo.withClient { client in
                try await withToken(tokens) {
                    _ = try? await echo.call(client, sending: [[1]])
                    return try await echo.call(client, sending: [[2]])
                }
            }
        }
        #expect(echo.calls == ["Bearer 1", "Bearer 1"])
        await #expect(throws: RPCError.self) { try await echo.withClient { try await echo.call($0, sending: [[1]]) } }
        #expect(echo.calls.last == "none")
    }

    @Test func `any other error ends the call, and the token stays`() async throws {
        let echo = Echo(allowing: [], code: .permissionDenied), tokens = tokens()
        let error = await #expect(throws: RPCError.self) { try await echo.call(tokens, sending: [[1]]) }
        #expect(error?.code == .permissionDenied && echo.calls == ["Bearer 1"] && tokens.cachedToken?.value == "1")
    }

    @Test func `calls that are refused at once make one load`() async throws {
        let echo = Echo(allowing: ["Bearer 2"]), tokens = tokens()
        try await echo.withClient { client in
            try await withThrowingTaskGroup { group in
                for _ in 1...50 { group.addTask { try await withToken(tokens) { try await echo.call(client, sending: [[1]]) } } }
                for try await answer in group { #expect(answer == [1]) }
            }
        }
        #expect(tokens.cachedToken?.value == "2")
    }

    /// Tokens named 1, 2 and so on.
    private func tokens() -> TokenService {
        let count = Atomic(0)
        return TokenService { _ in
            AccessToken("\(count.add(1, ordering: .relaxed).newValue)", lifetime: .seconds(3600))
        }
    }
}

private final class Echo: RegistrableRPCService {
    private static let method = MethodDescriptor(fullyQualifiedService: "Echo", method: "Echo")
    private let allowed: Set<String>, answers: Int, readsFirst: Bool, refusesAtEnd: Bool, code: RPCError.Code
    private let log = Mutex<[String]>([])

    /// - Parameters:
    ///   - readsFirst: Whether it reads all messages before it refuses.
    ///   - refusesAtEnd: Whether it refuses only after it has answered.
    init(
        allowing allowed: Set<String>, answers: Int = 1, readsFirst: Bool = false, refusesAtEnd: Bool = false,
        code: RPCError.Code = .unauthenticated
    ) {
        (self.allowed, self.answers, self.readsFirst) = (allowed, answers, readsFirst)
        (self.refusesAtEnd, self.code) = (refusesAtEnd, code)
    }

    /// What each call has carried.
    var calls: [String] { log.withLock(\.self) }

    func registerMethods(with router: inout RPCRouter<some ServerTransport>) {
        router.registerHandler(forMethod: Self.method, deserializer: Bytes(), serializer: Bytes()) { [self] request, _ in
            let token = String(request.metadata[stringValues: "authorization"].first { _ in true } ?? "none")
            log.withLock { $0.append(token) }
            let refusal = allowed.contains(token) ? nil : RPCError(code: code, message: "expired")
            if let refusal, !readsFirst, !refusesAtEnd { throw refusal }
            let messages = try await request.messages.reduce(into: []) { $0 += $1 }
            if let refusal, !refusesAtEnd { throw refusal }
            return StreamingServerResponse { writer in
                for _ in 1...self.answers { try await writer.write(messages) }
                if let refusal { throw refusal }
                return [:]
            }
        }
    }

    func withClient<Answer: Sendable>(
        _ body: @Sendable (GRPCClient<HTTP2ClientTransport.Posix>) async throws -> Answer
    ) async throws -> Answer {
        let listener = HTTP2ServerTransport.Posix(address: .ipv4(host: "127.0.0.1", port: 0), transportSecurity: .plaintext)
        return try await withGRPCServer(transport: listener, services: [self]) { server in
            let port = try #require(try await server.listeningAddress?.ipv4?.port)
            let transport = try HTTP2ClientTransport.Posix(
                target: .ipv4(address: "127.0.0.1", port: port), transportSecurity: .plaintext)
            return try await withGRPCClient(transport: transport, interceptors: [TokenInterceptor()]) { try await body($0) }
        }
    }

    func call(_ tokens: TokenService, sending messages: [[UInt8]]) async throws -> [UInt8] {
        try await withClient { client in try await withToken(tokens) { try await self.call(client, sending: messages) } }
    }

    func call(_ client: GRPCClient<HTTP2ClientTransport.Posix>, sending messages: [[UInt8]]) async throws -> [UInt8] {
        try await client.bidirectionalStreaming(
            request: StreamingClientRequest { try await $0.write(contentsOf: messages) }, descriptor: Self.method,
            serializer: Bytes(), deserializer: Bytes(), options: .defaults
        ) { response in try await response.messages.reduce(into: []) { $0 += $1 } }
    }
}

private struct Bytes: MessageSerializer, MessageDeserializer {
    func serialize<Buffer: GRPCContiguousBytes>(_ message: [UInt8]) throws -> Buffer { Buffer(message) }
    func deserialize(_ bytes: some GRPCContiguousBytes) throws -> [UInt8] {
        unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }
}
