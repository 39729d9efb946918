import AccessTokens
import AccessTokensFiles
import AccessTokensSharedFiles
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing
import TestBudgets

@Suite("The history of a shared file is that of one record")
struct SharedFileHistoryTests {
    @Test func `many callers in one process see one register`() async throws {
        let place = try Place()
        let stores = (0..<3).map { _ in SharedFileTokenStore(path: place.path) }
        let report = try await checkSharedTokenStore(stores, callers: 6, rounds: 10)
        #expect(report.failures == 0 && report.swaps >= 6, "\(report)")
    }

    /// `TOKEN_FILE_KILLS` says how many processes are killed, 12 unless it is set.
    @Test func `processes that are killed in the middle of a swap leave one register`() async throws {
        let environment = ProcessInfo.processInfo.environment
        let kills = environment["TOKEN_FILE_KILLS"].flatMap { Int($0) } ?? 12
        let seed = environment["TOKEN_FILE_SEED"].flatMap { UInt64($0) } ?? .random(in: .min ... .max)
        var done = (kills: 0, swaps: 0, failures: 0)
        // Each history has a few kills only: operations without an answer slow down the check of a long history.
        while done.kills < kills {
            let place = try Place()
            let stores = (0..<4).map { number in
                StoreInProcess(path: place.path, operationsPerKill: 5...25, seed: seed &+ UInt64(done.kills * 4 + number))
            }
            defer { for store in stores { store.stop() } }
            let trial = try await SharedStoreTrial(stores)
            do {
                let report = try await trial.run(callers: 4) { _ in stores.map(\.kills).reduce(0, +) < 12 }
                done.swaps += report.swaps
                done.failures += report.failures
            } catch { throw Violation(error: error, seed: seed, kills: done.kills) }
            done.kills += stores.map(\.kills).reduce(0, +)
        }
        #expect(done.swaps > 0, "the processes get on")
        if environment["TOKEN_FILE_KILLS"] != nil {
            try FileHandle.standardError.write(contentsOf: Data("history, seed \(seed): \(done)\n".utf8))
        }
    }

    struct Violation: Error {
        let error: any Error, seed: UInt64, kills: Int
    }
}
