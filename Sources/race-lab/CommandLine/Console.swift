import Foundation
import TokenServiceConcurrency

/// Where the lab writes: results to standard output, everything else to standard error.
enum Console {
    /// How many columns a line may take: those of the terminal, at most 80.
    @TaskLocal static var columns = widest

    private static let widest = 80

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
        try? write(activity(text, columns: width(of: STDERR_FILENO)), to: .standardError)
    }

    /// Returns the characters that go to the start of the line, erase it, and write a text in its place.
    ///
    /// The text is cut to fit: of one that takes two lines, only the second would be erased later.
    static func activity(_ text: String, columns: Int) -> String {
        "\r\u{1B}[K" + (text.count < columns ? text : text.prefix(max(columns - 2, 0)) + "…")
    }

    /// Returns how many columns a line may take where the output goes.
    static func width(of file: Int32) -> Int {
        var window = winsize()
        // Without a window there are none: a pipe or a file.
        let isKnown = unsafe ioctl(file, UInt(TIOCGWINSZ), &window) == 0 && window.ws_col > 0
        return isKnown ? min(Int(window.ws_col), widest) : widest
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

/// A part of the result can't be written.
struct OutputError: Error, CustomStringConvertible {
    let description: String

    /// Standard output is full or closed.
    init() {
        description = "standard output is full or closed: a part of the result is missing"
    }

    /// There is no page at the path, for the reason that the system gave.
    init(page path: String, _ error: any Error) {
        let reason = ((error as? CocoaError)?.underlying as? POSIXError).map {
            unsafe String(cString: strerror($0.code.rawValue))
        }
        description = "the page can't be written to '\(path)': \(reason ?? error.localizedDescription)"
    }
}
