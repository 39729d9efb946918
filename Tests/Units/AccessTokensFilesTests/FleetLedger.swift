import Foundation

/// The ledger of `shared-grant-worker`'s server, read once from beginning to end as it grows.
struct Ledger {
    /// The processes that were killed so far.
    var killed: Set<Int32> = []
    private(set) var rotations = 0
    private(set) var reuses = 0
    private(set) var sessions = 0
    /// Whether the last session has ended.
    private(set) var hasEnded = false
    private let file: FileHandle
    private var rest = ""
    /// An exchange that brought a token.
    private struct Exchange {
        let process: Int32
        let issued: Substring
        let number: Int
    }

    /// By the token that was presented.
    private var exchanges: [Substring: Exchange] = [:]
    /// The number of each process's last line.
    private var lastLines: [Int32: Int] = [:]
    private var lines = 0

    init(path: String) throws {
        file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    }

    var summary: String {
        "\(sessions) sessions, \(rotations) rotations, \(reuses) requests refused after a killed process's token"
    }

    /// Reads the new lines; returns the losses that no killed process explains.
    mutating func read() throws -> [String] {
        rest += String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        var problems: [String] = []
        while let end = rest.firstIndex(of: "\n") {
            let words = rest[..<end].split(separator: " ")
            rest.removeSubrange(...end)
            guard words.count == 4, let process = Int32(words[2]) else {
                problems.append("\(words) is not a line of the ledger")
                continue
            }
            problems += note(words[0], words[1], process)
        }
        return problems
    }

    private mutating func note(_ presented: Substring, _ answer: Substring, _ process: Int32) -> [String] {
        hasEnded = answer == "reuse"
        lines += 1
        if presented == "signin" {
            sessions += 1
            return []
        }
        defer { lastLines[process] = lines }
        guard hasEnded else {
            rotations += 1
            exchanges[presented] = Exchange(process: process, issued: answer, number: lines)
            return []
        }
        reuses += 1
        // The newest token of a session that had ended by then.
        guard let first = exchanges[presented], !isExplained(first) else { return [] }
        return ["\(presented) was presented by \(first.process), and again by \(process)"]
    }

    /// Whether the process was killed right after the exchange and its token was never seen again: each killed process explains
    /// at most one loss, its own.
    private func isExplained(_ exchange: Exchange) -> Bool {
        killed.contains(exchange.process) && lastLines[exchange.process] == exchange.number && exchanges[exchange.issued] == nil
    }
}
