import AccessTokens
import AccessTokensTesting
import Foundation
import TokenServiceConcurrency

@testable import AccessTokensSharing

/// A store that fails, is locked, is slow and damages what it has, until it heals.
///
/// An operation takes effect in the middle of its latency, also for a service that no longer waits for it.
final class StormyStore: Sendable {
    enum Weather: CaseIterable {
        case fair, fails, isLocked, isReadOnly, isTorn, losesAnswers
    }

    fileprivate struct State {
        var contents: StoredToken?
        var isDamaged = false
        /// The bytes of a shared record, and how often they were replaced.
        var record: Data?
        var swaps = 0
        var weather = Weather.fair
        var latency = Duration.zero
        var retryAfter: Duration?
    }

    private struct Damaged: TokenLoadFailure { let remedy = TokenServiceError.Remedy.signIn }
    fileprivate struct Down: Error {}

    private let state = Lock(State())
    private let clock: ManualClock

    init(_ clock: ManualClock) {
        self.clock = clock
    }

    /// The stored refresh token; `nil` if there is none or nobody can read it.
    var grant: String? { state.withLock { $0.isDamaged ? nil : $0.contents?.token.refreshToken } }
    var isDamaged: Bool { state.withLock { $0.isDamaged } }

    func turn(_ weather: Weather, latency: Duration = .zero, retryAfter: Duration? = nil) {
        state.withLock { ($0.weather, $0.latency, $0.retryAfter) = (weather, latency, retryAfter) }
    }

    /// The store as one process sees it.
    struct Handle: TokenStore {
        let store: StormyStore
        let isAlive: @Sendable () -> Bool

        @concurrent func load() async throws -> StoredToken? {
            try await store.perform(isAlive) { state in
                if [.fails, .isLocked].contains(state.weather) { throw state.failure }
                if state.isDamaged { throw Damaged() }
                return state.contents
            }
        }

        @concurrent func save(_ token: StoredToken) async throws {
            try await store.perform(isAlive) { try $0.change(to: token) }
        }

        @concurrent func remove() async throws {
            try await store.perform(isAlive) { try $0.change(to: nil) }
        }
    }

    /// The store as one process sees it that may share it with others; a record isn't torn.
    struct SharedHandle: SharedTokenStore {
        let store: StormyStore
        let isAlive: @Sendable () -> Bool

        @concurrent func load() async throws -> SharedRecord? {
            try await store.perform(isAlive) { state in
                if [.fails, .isLocked].contains(state.weather) { throw state.failure }
                return state.sharedRecord
            }
        }

        @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
            try await store.perform(isAlive) { state in
                guard state.sharedRecord?.revision == revision else { return .conflict(state.sharedRecord) }
                if state.weather == .isTorn { throw Down() }
                try state.change(to: GrantRecordFormat.decode(bytes).token.map { StoredToken($0, received: .distantPast) }) {
                    ($0.record, $0.swaps) = (bytes, $0.swaps + 1)
                }
                return .done(.init("\(state.swaps)"))
            }
        }
    }

    private func perform<Value: Sendable>(
        _ isAlive: () -> Bool, _ body: (inout State) throws -> Value
    ) async throws -> Value {
        let pause = state.withLock { $0.latency / 2 }
        if pause > .zero { try? await clock.sleep(for: pause) }
        guard isAlive() else { throw Down() }
        let outcome = Result { try state.withLock { try body(&$0) } }
        if pause > .zero { try? await clock.sleep(for: pause) }
        return try outcome.get()
    }
}

extension StormyStore.State {
    fileprivate var failure: any Error {
        weather == .isLocked ? ScriptedFailure(retryAfter: retryAfter) : StormyStore.Down()
    }

    fileprivate var sharedRecord: SharedRecord? { record.map { SharedRecord($0, revision: .init("\(swaps)")) } }

    fileprivate mutating func change(to token: StoredToken?, _ write: (inout Self) -> Void = { _ in }) throws {
        switch weather {
        case .fair:
            (contents, isDamaged) = (token, false)
            write(&self)
        case .fails, .isLocked: throw failure
        case .isReadOnly: throw ScriptedFailure(.programChange)
        case .isTorn:
            // The power went while it was written: the file is cut off or empty.
            (contents, isDamaged) = (token ?? contents, contents != nil || token != nil)
            throw StormyStore.Down()
        case .losesAnswers:
            (contents, isDamaged) = (token, false)
            write(&self)
            throw StormyStore.Down()
        }
    }
}
