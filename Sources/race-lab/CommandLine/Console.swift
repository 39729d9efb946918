import Foundation

/// Where the lab writes: results to standard output, everything else to standard error.
enum Console {
    /// Writes a line of the result, at once even into a pipe.
    static func print(_ line: String) {
        write(line + "\n", to: .standardOutput)
    }

    /// Writes a line about the run.
    static func note(_ line: String) {
        write(line + "\n", to: .standardError)
    }

    /// Shows what happens now, in place of what happened before; nothing if nobody watches.
    static func progress(_ text: String) {
        guard isatty(STDERR_FILENO) == 1 else { return }
        // To the line's start, erase it, write.
        write("\r\u{1B}[K\(text)", to: .standardError)
    }

    /// Writes a value as JSON.
    static func print(json value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        print(String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    private static func write(_ text: String, to file: FileHandle) {
        // Nobody is left to be told that standard output cannot be written to.
        try? file.write(contentsOf: Data(text.utf8))
    }
}
