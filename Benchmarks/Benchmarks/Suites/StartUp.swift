import Foundation

extension Suite {
    /// The core's share of a program: the time until its first token, and the size of its file.
    static func startUp(_ effort: Effort) async throws -> [Table] {
        let folder = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        let programs = ["first-token", "empty-program"].map { folder.appending(path: $0) }
        for program in programs where !FileManager.default.isExecutableFile(atPath: program.path) {
            throw Missing(program: program.path)
        }
        let subjects = programs.map { program in
            Subject(program.lastPathComponent) { count in
                try await timed { for _ in 0..<count { try run(program) } }
            }
        }
        let rounds = try await Rounds(of: subjects, count: 1, rounds: effort.isQuick ? 11 : 101, batch: effort.batch)
        var table = Table(
            id: "start-up", title: "A process that gets its first token, beside one that does nothing",
            note: "The program is linked dynamically with the toolchain's libraries, as SwiftPM does it by default.")
        for (index, program) in programs.enumerated() {
            let size = try FileManager.default.attributesOfItem(atPath: program.path)[.size] as? Int ?? 0
            var cells = [
                Table.Cell(
                    column: "start to end", value: Sample(rounds.results[index].map { $0 / 1_000_000 }), unit: .milliseconds)
            ]
            if index > 0 { cells.append(.init(column: "ours ÷ it", value: rounds.ratio(of: 0, to: index), unit: .ratio)) }
            cells.append(.init(column: "file", value: Sample(exactly: Double(size) / 1024), unit: .kibibytes))
            table.rows.append(.init(name: program.lastPathComponent, cells: cells))
        }
        return [table]
    }

    private static func run(_ program: URL) throws {
        let process = Process()
        process.executableURL = program
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Missing(program: program.path) }
    }
}

/// A program next to this one is missing, or fails.
private struct Missing: Error, CustomStringConvertible {
    let program: String
    var description: String {
        "\(program) is missing, or fails: build the package, then run `swift run -c release Benchmarks`."
    }
}
