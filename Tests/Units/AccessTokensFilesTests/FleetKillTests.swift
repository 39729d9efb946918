import AccessTokens
import AccessTokensFiles
import ChildProcesses
import Foundation
import Testing

@Suite("Processes that share a grant, killed at any moment", .serialized)
struct FleetKillTests {
    /// `FLEET_KILLS` sets how many processes are killed, `FLEET_PAUSE` the most milliseconds between two kills.
    @Test func `30: only a process that was killed loses a session`() async throws {
        let place = try Place()
        let path = place.directory + "/ledger"
        try Data().write(to: URL(fileURLWithPath: path))
        var ledger = try Ledger(path: path)
        let environment = ProcessInfo.processInfo.environment
        let kills = environment["FLEET_KILLS"].flatMap { Int($0) } ?? 10, start = ContinuousClock.now
        let longestPause = environment["FLEET_PAUSE"].flatMap { Int($0) } ?? 150
        try signIn(place, path)
        var workers = try (0..<3).map { _ in try self.start(place, path) }
        defer { for worker in workers { worker.end() } }
        for kill in 1...kills {
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...longestPause)))
            let index = Int.random(in: 0..<3)
            ledger.killed.insert(workers[index].processIdentifier)
            workers[index].end()
            workers[index] = try self.start(place, path)
            for problem in try ledger.read() { Issue.record("\(problem)") }
            if ledger.hasEnded {
                for worker in workers { worker.end() }
                ledger.killed.formUnion(workers.map(\.processIdentifier))
                try signIn(place, path)
                workers = try (0..<3).map { _ in try self.start(place, path) }
            }
            if environment["FLEET_KILLS"] != nil, kill == kills || kill.isMultiple(of: 1_000) {
                let seconds = start.duration(to: .now).components.seconds
                try note("\(kill) kills in \(seconds) s: \(ledger.summary)")
            }
        }
        // If processes start slowly, the last kill may precede the first load.
        for _ in 0..<1_200 where ledger.rotations == 0 {
            try await Task.sleep(for: .milliseconds(50))
            for problem in try ledger.read() { Issue.record("\(problem)") }
        }
        #expect(ledger.rotations > 0, "the processes load")
    }

    private func note(_ line: String) throws {
        try FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
    }

    private func signIn(_ place: Place, _ ledger: String) throws {
        #expect(try start(place, ledger, "sign-in").waitUntilExit() == 0)
    }

    private func start(_ place: Place, _ ledger: String, _ more: String...) throws -> ChildProcess {
        try ChildProcess(ChildProcess.program("shared-grant-worker"), [place.path, ledger] + more)
    }
}
