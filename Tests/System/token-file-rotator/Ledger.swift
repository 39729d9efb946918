import Foundation

/// The authorization server's state: a line `PRESENTED ISSUED` for each exchange, in a file that outlives the client.
///
/// Only whole lines count, each written in one call before the client gets its answer.
struct Ledger {
    private let file: FileHandle
    private var presented = 0
    private var issued = 0

    init(path: String) throws {
        if !FileManager.default.fileExists(atPath: path) { try Data().write(to: URL(fileURLWithPath: path)) }
        file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        if let line = text.split(separator: "\n").last {
            let numbers = line.split(separator: " ").compactMap { Int($0) }
            (presented, issued) = (numbers[0], numbers[1])
        }
    }

    /// Exchanges a grant for the next one; `nil` refuses it.
    ///
    /// Accepted are the grant issued last, and the one presented for it, since its answer may never have arrived.
    mutating func exchange(_ grant: Int) throws -> Int? {
        guard grant == issued || grant == presented else { return nil }
        (presented, issued) = (grant, issued + 1)
        try file.write(contentsOf: Data("\(presented) \(issued)\n".utf8))
        return issued
    }
}
