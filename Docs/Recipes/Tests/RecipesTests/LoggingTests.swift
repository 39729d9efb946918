import AccessTokens
import AccessTokensKeys
import AccessTokensSharing
import AccessTokensTesting
import Dispatch
import InMemoryLogging
import Logging
import Testing

@testable import ToSwiftLog

struct `Events in a log` {
    /// The lines that a function writes, in their order.
    static func lines(
        to handler: BlockingHandler? = nil, _ begin: (Logger) async throws -> Task<Void, Never>
    ) async rethrows -> [InMemoryLogHandler.Entry] {
        let lines = handler?.lines ?? InMemoryLogHandler()
        var logger = Logger(label: "tokens") { _ in handler ?? lines as any LogHandler }
        logger.logLevel = .trace
        await (try begin(logger)).value
        return lines.entries
    }

    /// Blocks the thread that writes the first line until its end is signalled.
    struct BlockingHandler: LogHandler {
        let lines = InMemoryLogHandler(), end = DispatchSemaphore(value: 0)
        let beginning = AsyncStream.makeStream(of: Void.self)
        var logLevel = Logger.Level.trace, metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            beginning.continuation.yield()
            if lines.entries.isEmpty { end.wait() }
            lines.log(event: event)
        }
    }

    @Test func `each event is a line, until the service is released`() async throws {
        let lines = try await Self.lines { logger in
            let tokens = TokenService { _ in AccessToken("s3cr3t", refreshToken: "r3fr3sh") }
            let logging = log(tokens, to: logger)
            await tokens.invalidate(try await tokens.retrieveToken())
            _ = await tokens.reset()
            return logging
        }
        #expect(lines.map { "\($0.message)" } == ["loadStarted", "loadSucceeded", "invalidated", "reset"])
        #expect(lines.map(\.level) == [.debug, .debug, .warning, .info])
        #expect(lines[1].metadata == ["generation": "0", "load": "1", "callers": "1"])
        for secret in ["s3cr3t", "r3fr3sh"] { #expect(!"\(lines)".contains(secret)) }
    }

    @Test(arguments: [
        (ScriptedFailure(), Logger.Level.error), (ScriptedFailure(.signIn), .notice),
        (ScriptedFailure(.clientRegistration), .critical),
    ])
    func `a failure's level says who can end it`(failure: ScriptedFailure, level: Logger.Level) async {
        let lines = await Self.lines { logger in
            let tokens = TokenService { _ in throw failure }
            let logging = log(tokens, to: logger)
            _ = try? await tokens.retrieveToken()
            return logging
        }
        #expect(lines.last?.level == level)
        #expect(lines.last?.metadata["error"] == "loadFailed" && lines.last?.metadata["description"] != nil)
    }

    // In a process of its own, one of whose threads it blocks.
    @Test func `a logger that blocks holds up no caller, and no line is lost`() async {
        await #expect(processExitsWith: .success) {
            let handler = BlockingHandler()
            let lines = try await Self.lines(to: handler) { logger in
                let tokens = TokenService { _ in AccessToken("s3cr3t") }
                let logging = log(tokens, to: logger)
                _ = try await tokens.retrieveToken()
                await handler.beginning.stream.first { true }
                // The stream keeps 256 events.
                for _ in 1...50 {
                    _ = try await tokens.retrieveToken()
                    _ = await tokens.reset()
                }
                #expect(handler.lines.entries.isEmpty)
                handler.end.signal()
                return logging
            }
            #expect(lines.count == 150 && lines.last?.message == "reset")
        }
    }

    @Test func `the lines of all keys have the part of a key that the program chooses`() async throws {
        let lines = try await Self.lines { logger in
            let services = TokenServices<String> { key, _ in AccessToken(key) }
            let logging = log(services, to: logger) { "\($0.prefix(1))" }
            for key in ["7 anna", "8 ben"] { _ = try await services[key].retrieveToken() }
            return logging
        }
        #expect(lines.map { $0.metadata["key"] } == ["7", "7", "8", "8"])
        for name in ["anna", "ben"] { #expect(!"\(lines)".contains(name)) }
    }

    @Test func `a token that another process has loaded is logged as routine`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock(), rotatesRefreshTokens: true)
        let store = SimulatedSharedStore()
        func process() -> TokenService { TokenService(sharedStore: store, loader: server.loader) }
        await process().replace(with: server.signIn())
        let lines = try await Self.lines { logger in
            let second = process(), logging = log(second, to: logger)
            _ = try await second.retrieveToken()
            return logging
        }
        #expect(lines.contains { "\($0.message)" == "restored" })
        #expect(lines.allSatisfy { $0.level == .debug })
    }
}
