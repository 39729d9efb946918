import Foundation

/// The standard error: progress and problems, beside the results.
enum Terminal {
    static func say(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }

    /// Shows the progress in place of the earlier one, if the standard error is a terminal.
    static func show(_ progress: String) {
        guard isatty(STDERR_FILENO) == 1 else { return }
        FileHandle.standardError.write(Data(("\r\u{1B}[K" + progress).utf8))
    }
}
