import Foundation

/// A test's settings for its processes; the times are milliseconds.
struct Settings: Codable {
    var directory: String
    var ledger: String
    var idle = 60_000
    var lifetime = 40
    var delay = 3
    var end = 40_000
    /// The program of the processes.
    var program = ""
    /// Where the API and its authorization server are, and where to listen.
    var server = ""
    var port = 0

    init(directory: String, ledger: String, program: String) {
        (self.directory, self.ledger, self.program) = (directory, ledger, program)
    }

    /// As ``text`` has them.
    init(text: String) {
        do { self = try JSONDecoder().decode(Settings.self, from: Data(text.utf8)) } catch { exit(64) }
    }

    var text: String { (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "" }

    /// The file of the processes' notes, one in each line.
    var notes: String { ledger + "-notes" }

    func note(_ text: String) throws {
        let file = unsafe open(notes, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        defer { close(file) }
        let line = Array("\(text)\n".utf8)
        guard unsafe write(file, line, line.count) == line.count else { throw CocoaError(.fileWriteUnknown) }
    }
}
