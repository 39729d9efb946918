import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import InMemoryLogging
import Logging
import Testing

@testable import ToSwiftLog

struct `Events in a log` {
    /// The lines that a function writes, in their order.
    func lines(_ begin: (Logger) async throws -> Task<Void, Never>) async rethrows -> [InMemoryLogHandler.Entry] {
        let handler = InMemoryLogHandler()
        var logger = Logger(label: "tokens") { _ in handler }
        logger.logLevel = .trace
        await (try begin(logger)).value
        return handler.entries
    }

    @Test func `each event is a line, until the service is released`() async throws {
        let lines = try await lines { logger in
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
        (ScriptedFailure.transient, Logger.Level.error), (.grantRefused, .notice), (.clientRefused, .critical),
    ])
    func `a failure's level says who can end it`(failure: ScriptedFailure, level: Logger.Level) async {
        let lines = await lines { logger in
            let tokens = TokenService { _ in throw failure }
            let logging = log(tokens, to: logger)
            _ = try? await tokens.retrieveToken()
            return logging
        }
        #expect(lines.last?.level == level)
        #expect(lines.last?.metadata["error"] == "loadFailed" && lines.last?.metadata["description"] != nil)
    }

    @Test func `the lines of all keys have the part of a key that the program chooses`() async throws {
        let lines = try await lines { logger in
            let services = TokenServices<String> { key, _ in AccessToken(key) }
            let logging = log(services, to: logger) { "\($0.prefix(1))" }
            for key in ["7 anna", "8 ben"] { _ = try await services[key].retrieveToken() }
            return logging
        }
        #expect(lines.map { $0.metadata["key"] } == ["7", "7", "8", "8"])
        for name in ["anna", "ben"] { #expect(!"\(lines)".contains(name)) }
    }
}
