import Foundation
import Testing

/// The server's process, which tests can kill and restart.
struct ServerProcess: Sendable {
    let script: String
    let directory: String

    /// Freezes the server: the system still accepts connections and bytes for it, but no answer comes.
    func freeze() throws {
        let text = try String(contentsOfFile: "\(directory)/pid", encoding: .utf8)
        let process = try #require(pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)))
        try #require(Foundation.kill(process, SIGSTOP) == 0)
    }

    /// Ends the server with SIGKILL, frozen or not.
    func kill() async throws {
        try await Self.run(script, "kill", directory)
    }

    /// Runs `body`, which kills the server, and then restarts the server even after an error.
    func restarting(after body: () async throws -> Void) async throws {
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        // In its own task: a test that ran out of time is cancelled, but the next one still needs the server.
        try await Task { try await restart() }.value
        try outcome.get()
    }

    /// Restarts the server with its existing database, after ending it if it is running.
    func restart() async throws {
        try await kill()
        try await Self.run(script, "restart", directory)
    }

    /// Runs a command, waits for its end without blocking a thread, and returns its output.
    @discardableResult
    static func run(_ command: String...) async throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        let output = Pipe()
        process.standardOutput = output
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do {
                try process.run()
            } catch {
                process.terminationHandler = nil
                continuation.resume(throwing: error)
            }
        }
        // A few bytes, which the pipe holds until the command has ended.
        let text = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        try #require(status == 0, "\(command.joined(separator: " "))")
        return text
    }
}
