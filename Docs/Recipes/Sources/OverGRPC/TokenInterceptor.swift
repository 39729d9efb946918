import AccessTokens
import GRPCCore
import Synchronization

/// Makes a call with a token, and once more with another one if the
/// server answers UNAUTHENTICATED.
///
/// ```swift
/// let reply = try await withToken(tokens) {
///     try await greeter.sayHello(request)
/// }
/// ```
///
/// The client needs a ``TokenInterceptor``, which adds the token. An
/// interceptor alone can't send a call again, since it has one stream.
/// Nothing is streamed twice: a call is made again only if it sent at
/// most one message and got none, and if it is the only one that `call`
/// has made. The token of any other is dropped, so that the next call
/// gets another.
func withToken<Answer>(
    _ tokens: TokenService, _ call: () async throws -> Answer
) async throws -> Answer {
    let first = TokenUse(token: try await tokens.retrieveToken())
    do {
        return try await first.carried(by: call)
    } catch let error as RPCError where error.code == .unauthenticated {
        guard first.canRepeat else {
            // Without a call with the token something else was refused.
            if first.hasBegun { await tokens.invalidate(first.token) }
            throw error
        }
    }
    let second = TokenUse(
        token: try await tokens.retrieveToken(insteadOf: first.token))
    do {
        return try await second.carried(by: call)
    } catch let error as RPCError where error.code == .unauthenticated {
        await tokens.invalidate(second.token)
        throw error
    }
}

/// Adds the token of ``withToken(_:_:)`` to calls, and notes what they
/// stream.
///
/// The token goes to whatever server the client is connected to, so use
/// the tokens for that one, over TLS.
struct TokenInterceptor: ClientInterceptor {
    @concurrent func intercept<Input: Sendable, Output: Sendable>(
        request: StreamingClientRequest<Input>, context: ClientContext,
        next:
            @concurrent (StreamingClientRequest<Input>, ClientContext)
            async throws -> StreamingClientResponse<Output>
    ) async throws -> StreamingClientResponse<Output> {
        guard let use = TokenUse.current else {
            return try await next(request, context)
        }
        use.callBegins()
        var request = request
        request.metadata.replaceOrAddString(
            "Bearer \(use.token.value)", forKey: "authorization")
        let produce = request.producer
        request.producer = { writer in
            let counting = CountingWriter(writer: writer, use: use)
            try await produce(RPCWriter(wrapping: counting))
        }
        var response = try await next(request, context)
        if case .success(var contents) = response.accepted {
            contents.bodyParts = RPCAsyncSequence(
                wrapping: contents.bodyParts.map { part in
                    if case .message = part { use.messageArrives() }
                    return part
                })
            response.accepted = .success(contents)
        }
        return response
    }
}

/// A token, and what the calls that carry it have streamed.
private final class TokenUse: Sendable {
    @TaskLocal static var current: TokenUse?

    let token: AccessToken
    private let counts = Mutex((calls: 0, sent: 0, received: 0))

    init(token: AccessToken) { self.token = token }

    func carried<Answer>(
        by call: () async throws -> Answer
    ) async throws -> Answer {
        try await Self.$current.withValue(self) { try await call() }
    }

    func callBegins() { counts.withLock { $0.calls += 1 } }
    func messageIsSent() { counts.withLock { $0.sent += 1 } }
    func messageArrives() { counts.withLock { $0.received += 1 } }

    var hasBegun: Bool { counts.withLock { $0.calls > 0 } }
    var canRepeat: Bool {
        counts.withLock {
            $0.calls == 1 && $0.sent <= 1 && $0.received == 0
        }
    }
}

private struct CountingWriter<Message: Sendable>: RPCWriterProtocol {
    let writer: RPCWriter<Message>
    let use: TokenUse

    func write(_ message: Message) async throws {
        use.messageIsSent()
        try await writer.write(message)
    }

    func write(contentsOf messages: some Sequence<Message>) async throws {
        for message in messages { try await write(message) }
    }
}
