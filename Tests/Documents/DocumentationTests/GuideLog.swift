import Synchronization

/// Lines that handlers on any thread have written, in order.
final class GuideLog: Sendable {
    private let written = Mutex<[String]>([])

    var lines: [String] { written.withLock { $0 } }

    func add(_ line: String) { written.withLock { $0.append(line) } }
}
