import AccessTokensTesting
import Foundation
import Testing

@testable import InValkey

private let environment = ProcessInfo.processInfo.environment

/// Uses the server at `VALKEY_HOST` and `VALKEY_PORT`, as the user `VALKEY_USER`, if there is one, with `VALKEY_PASSWORD`.
@Test(.enabled(if: environment["VALKEY_HOST"] != nil, "set VALKEY_HOST and others"), .timeLimit(.minutes(1)))
func `your Valkey keeps the promises of a shared store`() async throws {
    let host = environment["VALKEY_HOST"] ?? "", port = environment["VALKEY_PORT"].flatMap { Int32($0) } ?? 6379
    let user = environment["VALKEY_PASSWORD"].map { (name: environment["VALKEY_USER"] ?? "default", password: $0) }
    let key = "tokens:\(UUID())"
    let report = try await checkSharedTokenStore(
        (1...2).map { _ in ValkeyTokenStore(database: ValkeyConnection(host: host, port: port, user: user), key: key) })
    #expect(report.failures == 0 && report.swaps > 0 && report.conflicts > 0)
}
