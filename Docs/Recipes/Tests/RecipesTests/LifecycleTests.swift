import AccessTokens
import AccessTokensFiles
import Foundation
import InMemoryLogging
import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing
import UnixSignals

@testable import WithServiceLifecycle

@Suite(.timeLimit(.minutes(5)))
struct `A service group with tokens` {
    /// Sends the signal as soon as the group runs, and ends as the last of its requests is answered.
    struct Server: Service {
        let end: @Sendable () -> Void

        func run() async throws {
            kill(getpid(), SIGTERM)
            try await gracefulShutdown()
            end()
        }
    }

    static let silent = Logger(label: "group") { _ in SwiftLogNoOpLogHandler() }

    @Test func `a SIGTERM in the middle of a rotation loses nothing`() async throws {
        let folder: String = FileManager.default.temporaryDirectory.appending(path: "recipes-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        await #expect(processExitsWith: .success) { [folder = folder as String] in
            let (arrival, answer) = (AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self))
            let tokens = TokenService(store: FileTokenStore(path: folder + "/token")) { previous in
                arrival.continuation.finish()
                for await _ in answer.stream {}
                return AccessToken("new", refreshToken: "refresh-2")
            }
            await tokens.replace(with: AccessToken("old", lifetime: .zero, refreshToken: "refresh-1"))
            Task { try await tokens.retrieveToken() }
            for await _ in arrival.stream {}
            let server = Server { answer.continuation.finish() }
            try await run(server, with: tokens, logger: Self.silent)
            exit(0)
        }
        let saved = try await FileTokenStore(path: folder + "/token").load()
        #expect(saved?.token.refreshToken == "refresh-2")
    }

    @Test(arguments: [true, false])
    func `what isn't finished in time is logged`(isFinished: Bool) async throws {
        let handler = InMemoryLogHandler()
        let lifecycle = TokenLifecycle(logger: Logger(label: "tokens") { _ in handler }, limit: .seconds(3)) { limit in
            #expect(limit == .seconds(3))
            return isFinished
        }
        try await testGracefulShutdown { trigger in
            trigger.triggerGracefulShutdown()
            try await lifecycle.run()
        }
        #expect(handler.entries.map(\.level) == (isFinished ? [] : [.error]))
    }
}
