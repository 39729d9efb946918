import AccessTokens
public import AccessTokensSharing
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A shared store in memory: a test can make it slow, make it unreachable, or make it lose answers.
///
/// ```swift
/// let store = SimulatedSharedStore()
/// store.loseNextResponses()  // the swap is done, but the service gets an error
/// await service.replace(with: token)
/// #expect(store.log == ["load", "swap 1, answer lost", "load"])  // it reads again, and finds its own write
/// ```
///
/// **An operation takes effect in the middle of its latency**: after the first half, the request arrives; after the second half,
/// the answer. So with a latency of more than 5 s a service gives up, and its swap takes effect anyway.
///
/// The store measures its latency with its clock and does nothing by itself, so it works with a ``ManualClock`` and in an
/// exploration. In an exploration, each operation has a marked stop before it takes effect. All methods may be called
/// concurrently, from any thread.
public final class SimulatedSharedStore: SharedTokenStore {
    /// The operations of a store.
    package enum Operation: Sendable {
        /// A service reads the record.
        case load
        /// A service replaces the record.
        case swap
    }

    /// The error of an operation that fails or whose answer is lost: the service can't tell the two apart.
    package struct Failure: Error, Hashable, Described {
        package var text: String { "the simulated store did not answer" }
    }

    struct State: Sendable {
        var log: [String] = []
        var isReachable = true
        var latency: Duration
        /// The troubles of the next operations, in order, and how many operations each affects.
        var troubles: [Operation: [(trouble: Trouble, remaining: Int)]] = [:]
    }

    /// The record, and the tasks that wait for it to change.
    private let register = InMemorySharedTokenStore()
    let state: Lock<State>
    private let clock: any Clock<Duration>

    /// Creates a store without a record.
    ///
    /// - Parameters:
    ///   - clock: The clock that measures the latency.
    ///   - latency: How long an operation takes, including a failure.
    public init(clock: any Clock<Duration> = ContinuousClock(), latency: Duration = .zero) {
        self.clock = clock
        state = Lock(State(latency: latency))
    }

    /// The current record.
    package var contents: SharedRecord? { register.contents }

    /// The operations that have taken effect or failed so far, in order, with the record's revision:
    /// `load`, `load fails`, `swap 1`, `swap 2, answer lost`, `swap fails`, `swap meets 3`.
    public var log: [String] { state.withLock { $0.log } }

    /// Returns the current record.
    ///
    /// - Throws: An error if the test says so, and `CancellationError` if the task is cancelled while the store is slow.
    @concurrent public func load() async throws -> SharedRecord? {
        let pause = state.withLock { $0.latency / 2 }
        try await travel(pause)
        markPoint("the store is read")
        let record = register.contents, fails = state.withLock { $0.noteLoad() }
        try await travel(pause)
        if fails { throw Failure() }
        return record
    }

    /// Replaces the record if its revision is still the given one, in one step.
    ///
    /// - Parameters:
    ///   - bytes: The new record.
    ///   - revision: The revision of the record that it replaces; `nil` if there is none.
    /// - Throws: An error if the test says so; whether the record was replaced depends on which. `CancellationError` if the
    ///   task is cancelled while the store is slow.
    @concurrent public func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        let pause = state.withLock { $0.latency / 2 }
        try await travel(pause)
        markPoint("the store is written")
        let trouble = state.withLock { $0.nextTrouble(of: .swap, hasRecord: contents != nil) }
        if trouble == .conflict, let record = contents { _ = await register.swap(record.bytes, ifAt: record.revision) }
        let outcome = trouble == .failure ? nil : await register.swap(bytes, ifAt: revision)
        state.withLock { $0.note(outcome, isLost: trouble == .lostAnswer) }
        try await travel(pause)
        guard let outcome, trouble != .lostAnswer else { throw Failure() }
        return outcome
    }

    /// Returns when the record has changed, or the task is cancelled; the caller watches the limit, since its clock may be a
    /// test's.
    ///
    /// - Parameters:
    ///   - revision: The revision of the record that the caller knows; `nil` if it knows that there is none.
    ///   - limit: Ignored.
    /// - Returns: `nil`.
    /// - Throws: An error if the store is down when the wait begins.
    @concurrent public func changedRecord(
        from revision: SharedRecord.Revision?, atMost limit: Duration
    ) async throws -> SharedRecord? {
        guard isReachable else { throw Failure() }
        return try await register.changedRecord(from: revision, atMost: limit)
    }

    private func travel(_ pause: Duration) async throws {
        if pause > .zero { try await clock.sleep(for: pause) }
    }
}
