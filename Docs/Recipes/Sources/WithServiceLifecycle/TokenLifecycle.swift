import AccessTokens
import Logging
import ServiceLifecycle
import UnixSignals

/// At the end of the program, waits for the loads and saves that are
/// under way.
struct TokenLifecycle: Service {
    let logger: Logger
    var limit: Duration = .seconds(8)
    let drain: @Sendable (_ limit: Duration) async -> Bool

    func run() async throws {
        try? await gracefulShutdown()  // a cancellation is an end, too
        if await !drain(limit) {
            logger.error(
                "a load was under way; the next run may need a sign-in")
        }
    }
}

func run(
    _ server: any Service, with tokens: TokenService, logger: Logger
) async throws {
    let lifecycle = TokenLifecycle(logger: logger) {
        await tokens.drain(within: $0).isComplete
    }
    // Ended in reverse order, each when the one after it has ended.
    let group = ServiceGroup(
        services: [lifecycle, server],
        gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    try await group.run()
}
