import Foundation
import Testing

/// A server that the script `servers` has started, and that a test may kill.
struct TestServer: Sendable {
    let name: String
    let port: Int32
    let password: String
    let directory: String
    private let script: String

    /// The server of that name; `nil`: the script hasn't started one.
    init?(_ name: String) {
        let environment = ProcessInfo.processInfo.environment
        guard let port = environment["RECIPES_\(name.uppercased())_PORT"].flatMap({ Int32($0) }),
            let directory = environment["RECIPES_SERVERS"], let script = environment["RECIPES_SERVERS_SCRIPT"],
            let password = environment["RECIPES_PASSWORD"]
        else { return nil }
        (self.name, self.port, self.password, self.directory, self.script) = (name, port, password, directory, script)
    }

    func crash() async throws { try await run("crash", name) }
    func restart() async throws { try await run("restart", name) }
    func signal(_ name: String) async throws { try await run("signal", self.name, name) }
    func renew() async throws { try await run("renew", name) }
    func promote() async throws { try await run("promote", name) }

    /// Lets a test stop or kill the server, and starts it again, however that ends.
    func restoring(_ body: () async throws -> Void) async throws {
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        // In a task of its own: a test that ran out of time is cancelled, but the next one still needs the server.
        try await Task { try await restart() }.value
        try outcome.get()
    }

    private func run(_ command: String, _ arguments: String...) async throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: script)
        process.arguments = [command, directory] + arguments
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do {
                try process.run()
            } catch {
                process.terminationHandler = nil
                continuation.resume(throwing: error)
            }
        }
        try #require(status == 0)
    }
}
