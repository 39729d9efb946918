import Foundation
import TokenServiceConcurrency

/// Where the lab writes: results to standard output, everything else to standard error.
enum Console {
    /// How many columns of a terminal a line may take.
    static let columns = 80

    /// Whether writing to standard output has failed, so that the result is incomplete.
    private static let hasFailed = Lock(false)

    /// Writes a line of the result, immediately even into a pipe.
    ///
    /// A failure is reported by ``finish()``, so that the run still completes.
    static func print(_ line: String) {
        do { try write(line + "\n", to: .standardOutput) } catch { hasFailed.withLock { $0 = true } }
    }

    /// Throws if a part of the result was not written.
    static func finish() throws(OutputError) {
        if hasFailed.withLock({ $0 }) { throw OutputError() }
    }

    /// Writes a line about the run.
    static func note(_ line: String) {
        // A failure of standard error can't be reported anywhere.
        try? write(line + "\n", to: .standardError)
    }

    /// Replaces the line that shows the current activity; does nothing if standard error isn't a terminal.
    static func progress(_ text: String) {
        guard isatty(STDERR_FILENO) == 1 else { return }
        // Return to the start of the line, erase it, and write.
        try? write("\r\u{1B}[K\(text)", to: .standardError)
    }

    /// Writes a value as JSON.
    static func print(json value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        print(String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    private static func write(_ text: String, to file: FileHandle) throws {
        try file.write(contentsOf: Data(text.utf8))
    }
}

/// Standard output is full or closed.
struct OutputError: Error, CustomStringConvertible {
    let description = "standard output is full or closed: a part of the result is missing"
}
