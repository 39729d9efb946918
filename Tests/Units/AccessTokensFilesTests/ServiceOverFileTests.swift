import AccessTokens
import AccessTokensFiles
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite("A service over a file", .inRealTime)
struct ServiceOverFileTests {
    /// Records a server's requests and their refresh tokens.
    private final class Server: TokenLoader {
        let grants = Lock<[String?]>([])

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            let number = grants.withLock { grants in
                grants.append(previous?.refreshToken)
                return grants.count
            }
            return AccessToken("access-\(number)", lifetime: .seconds(3600), refreshToken: "refresh-\(number)")
        }
    }

    @Test func `a service over a file keeps its session through restarts, until the sign-out`() async throws {
        let directory = URL.temporaryDirectory.appending(path: "service-over-file-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "token").path
        let server = Server()
        func start() -> TokenService { TokenService(store: FileTokenStore(path: path), loader: server) }

        let first = start()
        await first.replace(with: AccessToken("signed-in", lifetime: .seconds(3600), refreshToken: "refresh-0"))
        #expect(first.cachedToken?.value == "signed-in")

        let second = start()
        let restored = try await second.retrieveToken()
        #expect(restored.value == "signed-in" && server.grants.withLock { $0 } == [])
        await second.invalidate(restored)
        #expect(try await second.retrieveToken().value == "access-1")

        let third = start()
        #expect(try await third.retrieveToken().value == "access-1")
        #expect(await third.reset().discarded.first?.refreshToken == "refresh-1")
        #expect(!FileManager.default.fileExists(atPath: path))

        #expect(try await start().retrieveToken().value == "access-2")
        #expect(server.grants.withLock { $0 } == ["refresh-0", nil])
    }
}
