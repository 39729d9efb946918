public import AccessTokens

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Stores a grant that several services, processes or hosts share: one record, replaced only by a caller that knows it.
///
/// The record is opaque to the store: services write and read its bytes. Sharing relies on one promise of
/// ``swap(_:ifAt:)``: of several swaps that name the same revision at most one succeeds, and all later loads, from anywhere, see
/// its record. A store that can't promise that, because it reads from a replica or loses acknowledged writes in a failover, can't
/// be shared without losing sessions.
///
/// Operations may be called concurrently. A service waits at most 5 s for each of them, and for
/// ``changedRecord(from:atMost:)`` until its limit.
public protocol SharedTokenStore: Sendable {
    /// Returns the current record.
    ///
    /// The read must be linearizable: it sees every swap, from anywhere, that ended before the read began.
    ///
    /// - Returns: `nil` only if there is no record. A store that can't tell (locked, unreachable) throws. A store that notices
    ///   that the record is damaged returns it with ``SharedRecord/damage``, so that a user can sign in again.
    @concurrent func load() async throws -> SharedRecord?

    /// Replaces the record if its revision is still the given one, atomically and durably.
    ///
    /// - Parameters:
    ///   - bytes: The new record.
    ///   - revision: The revision of the record that it replaces; `nil` if there is none.
    /// - Returns: The new revision, or the record that caused the conflict.
    /// - Throws: If the outcome is unknown, or nothing was written. The service reads the record again and recognises its own.
    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap

    /// Returns when the record may have changed since the revision, or when its task is cancelled; returning too early does no
    /// harm.
    ///
    /// The service cancels it at the limit, so a store that is notified of changes need not watch the time itself. Without an
    /// implementation, the record is read again after pauses that grow up to a second.
    ///
    /// - Parameters:
    ///   - revision: The revision of the record that the caller knows; `nil` if it knows that there is none.
    ///   - limit: How long to wait at most.
    /// - Returns: A record from a linearizable read during the wait, so that the service need not read again; `nil` if there is
    ///   none, or the store can't tell: then the service reads.
    @concurrent func changedRecord(from revision: SharedRecord.Revision?, atMost limit: Duration) async throws -> SharedRecord?

    /// The name of this process in marks, if ``isRunning(_:)`` can tell whether it is running; `nil` if it can't.
    ///
    /// A service asks once before each load, and waits 5 s for the response.
    var holder: String? { get async }

    /// Returns whether a holder is running: `false` only if it has certainly ended; `nil` if that is unknown.
    ///
    /// - Parameter holder: The ``holder`` of that process.
    @concurrent func isRunning(_ holder: String) async -> Bool?
}

extension SharedTokenStore {
    /// Reads again after pauses that grow from 10 ms to a second, until the revision has changed or the limit has passed.
    ///
    /// - Parameters:
    ///   - revision: The revision of the record that the caller knows; `nil` if it knows that there is none.
    ///   - limit: How long to wait at most.
    /// - Returns: The record as it was read; `nil` at the limit, or if the record is gone.
    @concurrent public func changedRecord(
        from revision: SharedRecord.Revision?, atMost limit: Duration
    ) async throws -> SharedRecord? {
        let end = ContinuousClock.now.advanced(by: limit)
        var pause = Duration.milliseconds(10)
        while ContinuousClock.now < end {
            // Lengthen the pause by up to a quarter, so that waiting processes don't all read at once.
            try await Task.sleep(for: min(pause * Double.random(in: 1...1.25), ContinuousClock.now.duration(to: end)))
            do {
                let record = try await load()
                if record?.revision != revision { return record }
            } catch {
                // A store that failed once may have recovered by the next read.
                try Task.checkCancellation()
            }
            pause = min(pause * 2, .seconds(1))
        }
        return nil
    }

    /// By default `nil`: the store can't tell whether a process is running.
    public var holder: String? { nil }

    /// By default `nil`: unknown.
    ///
    /// - Parameter holder: The ``holder`` of a process.
    @concurrent public func isRunning(_ holder: String) async -> Bool? { nil }
}

/// The record of a shared grant, as a store returned it.
public struct SharedRecord: Sendable, Equatable {
    /// Names one version of the record; no two versions have the same name, and services only compare names for equality.
    public struct Revision: Sendable, Hashable {
        /// The store's own name for the version: a number, an ETag, a version of a row.
        public var text: String

        /// Creates a revision.
        ///
        /// - Parameter text: The store's own name for the version.
        public init(_ text: String) {
            self.text = text
        }
    }

    /// The outcome of a swap.
    public enum Swap: Sendable, Equatable {
        /// The record was replaced; it has this revision now.
        case done(Revision)
        /// The record has another revision than the one given; `nil` if there is no record.
        case conflict(SharedRecord?)
    }

    /// The bytes that a service wrote.
    public var bytes: Data
    /// The version of the record.
    public var revision: Revision
    /// How long ago this version was written, at least; `nil` if the store can't tell.
    ///
    /// After a process has died in the middle of a load, a service waits. With an age, the wait counts from that load. Without
    /// one, it counts from when the service first saw the record, so a short-lived program never reaches its end. Take the age
    /// from one clock for all processes that share the record, such as the database's, and not from hosts that may disagree.
    ///
    /// If that clock is set, a service that has read the record before isn't misled, since it measures the time itself. One that
    /// has just started believes the age if two reads agree.
    public var age: Duration?
    /// Whether the age comes from a clock that can't be set and that all processes share, such as the time since the machine's start.
    ///
    /// Such a clock may stop while the machine sleeps. Of any other clock a service believes only what its own clock confirms.
    package var isAgeSteady = false
    /// Why the bytes are not what a service wrote; `nil` if the store knows of no damage.
    ///
    /// Services throw this error and leave the record as it is, until a user signs in or out: the sign-in or sign-out replaces
    /// the record at this revision.
    public var damage: (any Error)?

    /// Creates a record.
    ///
    /// - Parameters:
    ///   - bytes: The bytes that a service wrote.
    ///   - revision: The version of the record.
    ///   - age: How long ago this version was written, at least; `nil` if the store can't tell.
    ///   - damage: Why the bytes are not what a service wrote; `nil` if the store knows of no damage.
    public init(_ bytes: Data, revision: Revision, age: Duration? = nil, damage: (any Error)? = nil) {
        self.bytes = bytes
        self.revision = revision
        self.age = age
        self.damage = damage
    }

    /// Two records are equal if they have the same bytes and the same revision, even if their ages differ.
    public static func == (a: SharedRecord, b: SharedRecord) -> Bool {
        a.revision == b.revision && a.bytes == b.bytes
    }
}

/// Where the services of `TokenServices` share their grants with other processes: a record for each key.
///
/// `TokenServices` releases a key's service when it hasn't been used for a while; the record stays. A sign-out of an account must
/// reach such records too, so the stores can name their keys: `forEachStoredKey(_:)`.
public protocol SharedTokenStores<Key>: StoredKeys {
    /// Returns the store of a key; different keys have different records.
    ///
    /// Called whenever a service is created, on any thread. Calls may run at the same time, even for the same key. Only create
    /// the store here: don't read or write anything.
    ///
    /// - Parameter key: The key.
    func store(for key: Key) -> any SharedTokenStore
}
