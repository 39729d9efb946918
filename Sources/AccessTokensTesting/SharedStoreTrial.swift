import AccessTokens
package import AccessTokensSharing
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The check of a shared store, for tests that also decide when it ends.
package final class SharedStoreTrial: Sendable {
    private struct Seen {
        var report: SharedStoreReport = (loads: 0, swaps: 0, conflicts: 0, failures: 0)
        /// The content of each revision.
        var contents: [SharedRecord.Revision: String] = [:]
        var revisions: [String: SharedRecord.Revision] = [:]
    }

    private let stores: [any SharedTokenStore]
    /// How long a store may take to return from a wait for a change that has happened, or that was cancelled.
    private let patience: Duration
    private let seen = Lock(Seen())
    /// Distinguishes the contents of this trial from those of earlier ones.
    private let name = String(UInt32.random(in: .min ... .max), radix: 36)

    /// How many operations of each kind there were so far.
    package var report: SharedStoreReport { seen.withLock { $0.report } }

    /// Begins a trial with stores of one record.
    package init(_ stores: [any SharedTokenStore], patience: Duration = .seconds(30)) async throws {
        (self.stores, self.patience) = (stores, patience)
        guard !stores.isEmpty else { throw SharedStoreViolation(text: "The list of stores is empty: pass at least one.") }
    }

    /// Restores the record's previous content, as far as the store allows; services treat an empty record as none.
    ///
    /// In a task of its own, since that of the check may be cancelled.
    package func putBack(_ record: SharedRecord?) async {
        await Task { [store = stores[0]] in
            var current = try? await store.load()
            for _ in 0..<10 {
                switch try? await store.swap(record?.bytes ?? Data(), ifAt: current?.revision) {
                case .done?: return
                case .conflict(let other?)?: current = other
                case .conflict(nil)?, nil: current = try? await store.load()
                }
            }
        }.value
    }

    /// Checks single operations.
    @concurrent package func runOneAtATime() async throws {
        let before = try await stores[0].load()
        var current = before
        // Contents larger than a packet, contents with every byte, and last the short text with which the history begins.
        for content in [Data(repeating: 7, count: 100_000) + text(0), Data((0...255).map { UInt8($0) }) + text(1), text(2)] {
            guard case .done(let revision) = try await stores[0].swap(content, ifAt: current?.revision) else {
                throw SharedStoreViolation(text: "A swap at the current revision didn't replace the record.")
            }
            try require(revision != current?.revision && revision != before?.revision, "A new record has an earlier revision.")
            let stale = current?.revision
            current = SharedRecord(content, revision: revision)
            for store in stores {
                try require(try await store.load() == current, "A load after a swap didn't return the new record.")
                for revision in [stale, nil] where revision != current?.revision {
                    let outcome = try await store.swap(text(3), ifAt: revision)
                    try require(outcome == .conflict(current), "A swap at a stale revision must report a conflict, but didn't.")
                }
                // The revision is outdated, so this returns at once or after a poll.
                guard let wait = try await waitForChange(from: stale, in: store, atMost: patience) else {
                    throw SharedStoreViolation(text: "A wait for a change that had already happened didn't return.")
                }
                let found = try wait.get()
                try require(found == nil || found == current, "A wait for a change returned a record that isn't the current one.")
                _ = try await waitForChange(from: revision, in: store, atMost: .milliseconds(10))
            }
        }
        try require(try await stores[0].load() == current, "A swap that reported a conflict changed the record.")
    }

    /// Waits for a change, and cancels the wait at its limit, as a service does.
    ///
    /// - Returns: The result of the wait; `nil` if it was cancelled.
    private func waitForChange(
        from revision: SharedRecord.Revision?, in store: any SharedTokenStore, atMost limit: Duration
    ) async throws -> Result<SharedRecord?, any Error>? {
        let end = SingleResult<Result<SharedRecord?, any Error>?>()
        let wait = Task {
            let result = await Result { try await store.changedRecord(from: revision, atMost: limit) }
            end.complete(with: .success(Task.isCancelled ? nil : result))
        }
        let timer = Task {
            try await Task.sleep(for: limit)
            wait.cancel()
            try await Task.sleep(for: patience)
            end.complete(with: .failure(SharedStoreViolation(text: "A wait for a change goes on after it was cancelled.")))
        }
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            try await end.value()
        } onCancel: {
            wait.cancel()
        }
    }

    /// Lets callers load and swap until each has done enough rounds, then checks the history.
    ///
    /// - Parameters:
    ///   - callers: The number of callers.
    ///   - goesOn: Called before each round, with the number of rounds that the caller has done.
    @concurrent package func run(
        callers: Int, while goesOn: @escaping @Sendable (Int) -> Bool
    ) async throws -> SharedStoreReport {
        let history = RegisterHistory(initial: try note(try await stores[0].load()))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for caller in 0..<max(callers, 0) {
                group.addTask { [self] in
                    var round = 0
                    while goesOn(round) {
                        try await play(caller, round, history)
                        round += 1
                    }
                }
            }
            try await group.waitForAll()
        }
        // The last load: every acknowledged swap must be visible.
        _ = try await load("the last caller", stores[0], history)
        if let problem = history.problem() {
            throw SharedStoreViolation(text: "No single record could have given these answers: \(problem).")
        }
        return report
    }

    private func play(_ caller: Int, _ round: Int, _ history: RegisterHistory) async throws {
        let store = stores[caller % stores.count]
        var outcome = try await load("caller \(caller)", store, history)
        // After a conflict, the returned record is enough for another attempt.
        for attempt in 1...2 {
            guard case .record(let record) = outcome else { return }
            let content = "\(name)-\(caller)-\(round)-\(attempt)"
            outcome = try await swap(content, for: record, "caller \(caller)", store, history)
        }
    }

    /// A caller's knowledge after an operation.
    private enum Knowledge {
        case record(SharedRecord?)
        case nothing
    }

    private func load(
        _ caller: String, _ store: any SharedTokenStore, _ history: RegisterHistory
    ) async throws -> Knowledge {
        let call = history.begin(caller)
        do {
            let record = try await store.load()
            history.end(call, .sees(try note(record)))
            seen.withLock { $0.report.loads += 1 }
            return .record(record)
        } catch {
            history.end(call, .throwsError)
            try fail(error)
            return .nothing
        }
    }

    private func swap(
        _ content: String, for record: SharedRecord?, _ caller: String, _ store: any SharedTokenStore,
        _ history: RegisterHistory
    ) async throws -> Knowledge {
        let call = history.begin(caller, swap: (content, record.map { String(decoding: $0.bytes, as: UTF8.self) }))
        do {
            switch try await store.swap(Data(content.utf8), ifAt: record?.revision) {
            case .done(let revision):
                history.end(call, .replaces)
                _ = try note(SharedRecord(Data(content.utf8), revision: revision))
                seen.withLock { $0.report.swaps += 1 }
                return .nothing
            case .conflict(let current):
                history.end(call, .sees(try note(current)))
                seen.withLock { $0.report.conflicts += 1 }
                return .record(current)
            }
        } catch {
            // The call stays open: the swap may take effect at any later moment, or never.
            try fail(error)
            return .nothing
        }
    }

    private func fail(_ error: any Error) throws {
        if error is CancellationError || error is SharedStoreViolation { throw error }
        seen.withLock { $0.report.failures += 1 }
    }

    /// Notes a record that a store returned, and returns its content.
    private func note(_ record: SharedRecord?) throws(SharedStoreViolation) -> String? {
        guard let record else { return nil }
        try require(record.damage == nil, "A load reports a record that was just written as damaged.")
        let content = String(decoding: record.bytes, as: UTF8.self)
        let isKnown = seen.withLock { seen in
            let known = (seen.contents[record.revision] ?? content, seen.revisions[content] ?? record.revision)
            seen.contents[record.revision] = content
            seen.revisions[content] = record.revision
            return known == (content, record.revision)
        }
        try require(isKnown, "Two records have the same revision, or one record has two revisions.")
        return content
    }

    private func text(_ number: Int) -> Data { Data("\(name) alone \(number)".utf8) }
}

private func require(_ condition: Bool, _ problem: String) throws(SharedStoreViolation) {
    guard condition else { throw SharedStoreViolation(text: problem) }
}
