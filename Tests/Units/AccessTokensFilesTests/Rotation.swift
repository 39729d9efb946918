import AccessTokensFiles
import ChildProcesses
import Foundation
import Testing

/// A rotating client in a separate process, and the ledger of its server.
struct Rotation: Sendable {
    let place: Place

    init(in place: Place) {
        self.place = place
    }

    var ledger: String { place.directory + "/ledger" }

    /// The ledger's lines: the grant presented and the one issued for it.
    func exchanges() throws -> [(presented: Int, issued: Int)] {
        guard FileManager.default.fileExists(atPath: ledger) else { return [] }
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: ledger)), as: UTF8.self)
        #expect(text.isEmpty || text.hasSuffix("\n"))
        return try text.split(separator: "\n").map { line in
            let numbers = line.split(separator: " ").compactMap { Int($0) }
            try #require(numbers.count == 2)
            return (numbers[0], numbers[1])
        }
    }

    /// Lets a process save once, with a limit on the size of files, and returns its output.
    func saveOnce(limit: Int, umask: String) async throws -> String {
        try await run(Self.program, [place.path, ledger, "\(limit)", umask]) { output, _ in
            String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        }
    }

    /// Runs a process as a tool, and returns its output.
    func visit(_ kind: String) async throws -> String {
        try await run(Self.program, [place.path, ledger, kind]) { output, _ in
            String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        }
    }

    /// Lets a process save once, at a relative path, in a working directory that has been deleted; returns its output.
    func saveOnceNowhere(at path: String) async throws -> String {
        let script = #"mkdir "$0" && cd "$0" && rmdir "$0" && exec "$@""#
        let program = Self.program.path
        let arguments = ["-c", script, place.directory + "/gone", program, path, ledger, "\(1 << 20)", "022"]
        return try await run(URL(fileURLWithPath: "/bin/sh"), arguments) { output, _ in
            String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        }
    }

    /// Lets a process look for keys in the directory, and in that of one key, without permission; returns its output.
    func lookWithoutPermission() async throws -> String {
        try await run(Self.program, [place.directory]) { output, _ in
            String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        }
    }

    /// Starts rotating, and kills the process after some lines of its output and some more turns of a loop.
    ///
    /// - Returns: Its last lines.
    func kill(afterLines lines: Int, turns: Int) async throws -> String {
        try await run(Self.program, [place.path, ledger]) { output, process in
            var text = ""
            var count = 0
            while count < lines {
                // Waits until there is output: the process decides when, not a clock.
                let data = output.availableData
                if data.isEmpty { break }
                text = String(decoding: data, as: UTF8.self)
                count += text.utf8.count { $0 == UInt8(ascii: "\n") }
            }
            var turn: UInt64 = 1
            for _ in 0..<turns { turn = turn &* 6_364_136_223_846_793_005 &+ 1 }
            _ = Foundation.kill(turn == 0 ? 0 : process, SIGKILL)
            return text + String(decoding: output.readDataToEndOfFile(), as: UTF8.self)
        }
    }

    private func run(
        _ program: URL, _ arguments: [String], _ body: @escaping @Sendable (FileHandle, pid_t) -> String
    ) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            // On its own thread: reading blocks, and the pool has few threads.
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        let process = try ChildProcess(program, arguments, connecting: .output)
                        let text = body(process[.output], process.processIdentifier)
                        process.waitUntilExit()
                        return text
                    })
            }
        }
    }

    private static let program = ChildProcess.program("token-file-rotator")
}
