import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Interleavings
import TokenServiceConcurrency

/// Mistakes by which fleets that share one rotating refresh token have lost their session.
///
/// Each changes one line of ``SharingClient``. Sources: the threads named with each case.
enum SharingMistake: CaseIterable, Sendable {
    /// The refresh token is presented without a mark; only the write is made by compare-and-swap. Source: aws-cli#10628.
    case marksNothing
    /// Processes that waited present the token that they had read before. Source: Nango PR#2494, matrix-rust-sdk PR#6860.
    case presentsWhatItReadBefore
    /// The mark is a lease shorter than an exchange may take. Source: litellm PR#31474.
    case leaseShorterThanTheExchange
    /// The mark is a lease, and its holder is frozen for longer than the lease. Source: Nango `Locking.ts`.
    case leaseWithoutDoubt
    /// A wait that takes too long ends in a request without a mark. Source: n8n PR#37828, neon PR#233.
    case goesOnWithoutAMark
    /// The save doesn't compare: it replaces whatever is there, even a later sign-in.
    case savesBlindly
    /// The save is given up if anything has changed, although the new token is the only valid one.
    case dropsTheTokenOnConflict
    /// A swap whose answer was lost is treated as failed.
    case takesALostAnswerForAFailure
    /// A refusal removes the record, and the winner's token with it. Source: supabase-swift#703, claude-code#88583.
    case clearsOnRefusal
}

/// A server that ends the session when a refresh token is presented twice, or only refuses the token.
final class SharingServer: Sendable {
    struct State {
        var issued = 0
        /// The only valid token; `nil`: the session has ended.
        var live: Int?
        /// The process that got it; `nil`: a sign-in.
        var receiver: String?
        /// The first token of the session.
        var first = 0
    }

    let state = Lock(State())
    private let isStrict: Bool

    init(isStrict: Bool) { self.isStrict = isStrict }

    func issue(to receiver: String?) -> Int {
        state.withLock { state in
            state.issued += 1
            (state.live, state.receiver) = (state.issued, receiver)
            if receiver == nil { state.first = state.issued }
            return state.issued
        }
    }

    /// - Returns: The next token; `nil`: refused.
    func present(_ token: Int, by name: String) -> Int? {
        guard state.withLock({ $0.live }) != token else { return issue(to: name) }
        // A token of an earlier session doesn't end this one.
        state.withLock { if isStrict, token >= $0.first { $0.live = nil } }
        return nil
    }
}

/// One process of a fleet, which follows the protocol *mark, present, save* or makes a mistake.
struct SharingClient: Sendable {
    struct Record: Codable {
        var generation = 0
        var token: Int?
        var mark: String?
    }

    struct Seen {
        var record: Record
        var revision: SharedRecord.Revision
    }

    let name: String
    let mistake: SharingMistake?
    let server: SharingServer
    let store: SimulatedSharedStore
    let clock: VirtualClock

    /// How long another process's mark is respected.
    private var doubt: Duration {
        switch mistake {
        case .leaseShorterThanTheExchange: .milliseconds(500)
        case .leaseWithoutDoubt: .seconds(10)
        default: .seconds(60)
        }
    }

    func read() async -> Seen? {
        guard let stored = try? await store.load(), let record = try? Self.decode(stored.bytes) else { return nil }
        return Seen(record: record, revision: stored.revision)
    }

    /// Performs one refresh, until this process or another has a new token, or none can be obtained.
    func refresh() async {
        guard let first = await read() else { return }
        var seen = first, since = clock.now
        while !Task.isCancelled, let latest = await read() {
            if latest.revision != seen.revision { since = clock.now }
            seen = latest
            if mistake == .presentsWhatItReadBefore, seen.record.generation > first.record.generation {
                return await present(first.record.token ?? 0, seen)
            }
            // Another process has a newer token: adopt it.
            guard seen.record.generation == first.record.generation, let token = seen.record.token else { return }
            if mistake == .marksNothing { return await present(token, seen) }
            if let mark = seen.record.mark, mark != name, since.duration(to: clock.now) < doubt {
                try? await clock.sleep(for: .milliseconds(700))
                if mistake == .goesOnWithoutAMark { return await present(token, seen) }
                continue
            }
            let began = clock.now
            var marked = seen.record
            marked.mark = name
            guard case .done(let revision)? = await swap(marked, at: seen.revision) else { continue }
            // This process may have been frozen meanwhile.
            if began.duration(to: clock.now) > .seconds(5) { continue }
            return await present(token, Seen(record: marked, revision: revision))
        }
    }

    /// The exchange, which takes two seconds, and the save.
    private func present(_ token: Int, _ seen: Seen) async {
        try? await clock.sleep(for: .seconds(1))
        let new = server.present(token, by: name)
        try? await clock.sleep(for: .seconds(1))
        var next = seen.record
        next.mark = nil
        if let new { (next.token, next.generation) = (new, next.generation + 1) }
        if new == nil, mistake == .clearsOnRefusal, let latest = await read() {
            next.token = nil
            _ = await swap(next, at: latest.revision)
        } else {
            await save(next, at: seen.revision)
        }
    }

    private func save(_ next: Record, at revision: SharedRecord.Revision) async {
        var revision = revision
        while true {
            switch await swap(next, at: revision) {
            case .done?: return
            case nil where mistake == .takesALostAnswerForAFailure:
                // The mistake: try again with the token in memory.
                if let token = next.token { return await present(token - 1, Seen(record: next, revision: revision)) }
                return
            default:
                guard mistake != .dropsTheTokenOnConflict, let latest = await read() else { return }
                let isMoved = latest.record.generation >= next.generation && mistake != .savesBlindly
                if isMoved || latest.record.token == next.token { return }
                revision = latest.revision
            }
        }
    }

    /// - Returns: `nil` if there was no answer.
    func swap(_ record: Record, at revision: SharedRecord.Revision?) async -> SharedRecord.Swap? {
        guard let bytes = try? JSONEncoder().encode(record) else { return nil }
        return try? await store.swap(bytes, ifAt: revision)
    }

    static func decode(_ bytes: Data) throws -> Record { try JSONDecoder().decode(Record.self, from: bytes) }
}
