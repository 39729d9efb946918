import AccessTokens
import AccessTokensSharing
import Foundation
import Interleavings
import TokenServiceConcurrency

/// The fault of a process's current refresh, from its mark to its save.
final class FaultLine: Sendable {
    private let fault = Lock(TrialProcess.Fault?.none)

    func begin(_ next: TrialProcess.Fault?) { fault.withLock { $0 = next } }
    var current: TrialProcess.Fault? { fault.withLock { $0 } }
}

/// The trial's record, as a process accesses it.
struct SimulatedStore: SharedTokenStore {
    let process: TrialProcess
    let trial: SharingTrial
    let faults: FaultLine

    @concurrent func load() async throws -> SharedRecord? {
        try await process.access()
        return await trial.record.load()
    }

    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        try await process.access()
        let swap = await trial.record.swap(bytes, ifAt: revision)
        if case .done = swap, String(decoding: bytes, as: UTF8.self).contains(#""mark""#) {
            faults.begin(trial.nextFault())
        }
        return swap
    }

    var holder: String? { "\(process.number)" }

    @concurrent func isRunning(_ holder: String) async -> Bool? { trial.isRunning(holder) }

    @concurrent func changedRecord(
        from revision: SharedRecord.Revision?, atMost limit: Duration
    ) async throws -> SharedRecord? {
        let end = process.simulation.clock.now.advanced(by: limit)
        while process.simulation.clock.now < end {
            try await process.sleep(.seconds(1))
            if try await load()?.revision != revision { break }
        }
        return nil
    }
}

/// The trial's server, as a process accesses it.
struct SimulatedLoader: TokenLoader {
    let process: TrialProcess
    let trial: SharingTrial
    let faults: FaultLine
    /// Whether it checks the time after it has a connection, or before.
    let asksLast: Bool

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        let fault = faults.current
        faults.begin(nil)
        if !asksLast { try LoadTime.check() }
        try await process.meet(fault, at: .beforeRequest)
        if asksLast { try LoadTime.check() }
        let next = try await trial.exchange(
            previous?.refreshToken.flatMap { Int($0.dropFirst("refresh-".count)) } ?? 0, by: process, fault)
        try await process.meet(fault, at: .beforeSave)
        guard let next else { throw SharingTrial.Refused() }
        return trial.token(next.number)
    }
}
