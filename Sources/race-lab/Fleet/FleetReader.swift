import Foundation

/// Reads what a process says until it has ended.
struct FleetReader: Sendable {
    let process: Process
    let output: FileHandle

    /// Whether a signal ended it.
    var wasKilled: Bool { process.terminationReason == .uncaughtSignal }

    /// Blocks until the process has ended; tells each whole line.
    func read(_ report: (FleetWorker.Line) -> Void) {
        var rest = ""
        while case let data = output.availableData, !data.isEmpty {
            rest += String(decoding: data, as: UTF8.self)
            while let end = rest.firstIndex(of: "\n") {
                if let line = FleetWorker.Line(rest[..<end]) { report(line) }
                rest.removeSubrange(...end)
            }
        }
        process.waitUntilExit()
    }
}

/// A process of the fleet has ended without having been killed.
struct FleetProblem: Error, CustomStringConvertible {
    let process: Int32

    var description: String { "process \(process) has ended by itself, which is a fault of race-lab" }
}
