import AccessTokens
import AccessTokensSharing
import ChildProcesses
import Dispatch
import Foundation
import Testing
import TokenServiceConcurrency

/// A shared file store in its own process, which is sometimes killed in the middle of an operation.
final class StoreInProcess: SharedTokenStore {
    private struct State: Sendable {
        var random: SplitMix64
        var operationsUntilKill: Int
        var kills = 0
    }

    private let path: String
    private let operationsPerKill: ClosedRange<Int>
    private let state: Lock<State>
    /// Operations wait here for the process's answer.
    private let queue = DispatchQueue(label: "StoreInProcess")
    /// Accessed only on the queue.
    private nonisolated(unsafe) var worker: ChildProcess?

    /// - Parameter operationsPerKill: How many operations a process begins; it is killed during the last one.
    init(path: String, operationsPerKill: ClosedRange<Int>, seed: UInt64) {
        self.path = path
        self.operationsPerKill = operationsPerKill
        var random = SplitMix64(seed: seed)
        let first = Int.random(in: operationsPerKill, using: &random)
        state = Lock(State(random: random, operationsUntilKill: first))
    }

    var kills: Int { state.withLock { $0.kills } }

    /// The process was killed before it answered.
    struct Killed: Error {}

    func load() async throws -> SharedRecord? {
        try record(in: try await ask("load"))
    }

    func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        let words = try await ask("swap \(revision?.text ?? "-") \(String(decoding: bytes, as: UTF8.self))")
        if words.first == "done", words.count == 2 { return .done(.init(words[1])) }
        return .conflict(try record(in: words))
    }

    private func record(in words: [String]) throws -> SharedRecord? {
        if words == ["none"] { return nil }
        try #require(words.count == 3 && words[0] == "record", "\(words)")
        return SharedRecord(Data(words[2].utf8), revision: .init(words[1]))
    }

    private func ask(_ line: String) async throws -> [String] {
        let answer = SingleResult<[String]>()
        queue.async { answer.complete(with: Result { try self.askNow(line) }) }
        return try await answer.value()
    }

    private func askNow(_ line: String) throws -> [String] {
        let worker = unsafe try worker ?? start()
        // After how many turns of a loop the process is killed; `nil`: not this time.
        let turns = state.withLock { state -> Int? in
            state.operationsUntilKill -= 1
            guard state.operationsUntilKill <= 0 else { return nil }
            state.operationsUntilKill = Int.random(in: operationsPerKill, using: &state.random)
            state.kills += 1
            return Int.random(in: 0...200_000, using: &state.random)
        }
        try worker[.input].write(contentsOf: Data((line + "\n").utf8))
        if let turns { end(worker, after: turns) }
        var answer = Data()
        while answer.last != UInt8(ascii: "\n") {
            let more = worker[.output].availableData
            guard !more.isEmpty else { throw Killed() }
            answer += more
        }
        return String(decoding: answer, as: UTF8.self).split(whereSeparator: \.isWhitespace).map { String($0) }
    }

    private func start() throws -> ChildProcess {
        let new = try ChildProcess(ChildProcess.program("shared-grant-worker"), [path], connecting: .input, .output)
        unsafe worker = new
        return new
    }

    private func end(_ old: ChildProcess, after turns: Int) {
        var turn: UInt64 = 1
        for _ in 0..<turns { turn = turn &* 6_364_136_223_846_793_005 &+ 1 }
        _ = kill(turn == 0 ? 0 : old.processIdentifier, SIGKILL)
        old.waitUntilExit()
        unsafe worker = nil
    }

    /// Ends the process.
    func stop() {
        queue.sync { if let worker = unsafe worker { end(worker, after: 0) } }
    }
}
