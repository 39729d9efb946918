import AccessTokens

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Where a grant lives that several services, processes or hosts share: one record, replaced only by one who knows it.
///
/// The record is opaque to the store: bytes that a service wrote and that services read. What makes sharing safe is one promise
/// of ``swap(_:ifAt:)``: of several that name the same revision at most one succeeds, and all later loads, from anywhere, see its
/// record. A store that can't promise that, because it reads from a replica or loses acknowledged writes in a failover, can't be
/// shared without losing sessions.
///
/// Operations may be called concurrently. A service gives each of them 5 s.
public protocol SharedTokenStore: Sendable {
    /// Returns the record as it is now.
    ///
    /// The read must be linearizable: it sees every swap that ended before it began, wherever that was called.
    ///
    /// - Returns: `nil` only if there is no record. A store that can't say (locked, unreachable) throws. One that sees that the record is
    ///   damaged returns it with ``SharedRecord/damage``, so that a user can sign in again.
    @concurrent func load() async throws -> SharedRecord?

    /// Replaces the record if its revision is still the given one, altogether or not at all, durably.
    ///
    /// - Parameters:
    ///   - bytes: The new record.
    ///   - revision: The revision of the record that it replaces; `nil`: there is none.
    /// - Returns: The new revision, or the record that stands in the way.
    /// - Throws: If nothing is known of the outcome, or nothing was written. The service reads the record again and recognises
    ///   its own.
    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap

    /// Returns when the record may have changed since the revision, and ends when its task is cancelled; too early does no harm.
    ///
    /// At the limit the service cancels it, so a store that is told of changes need not count the time itself.
    /// Without an implementation, the service asks again after pauses that grow up to a second.
    ///
    /// - Parameters:
    ///   - revision: The revision of the record that the caller knows; `nil`: it knows that there is none.
    ///   - limit: How long to wait at most.
    @concurrent func waitForChange(from revision: SharedRecord.Revision?, atMost limit: Duration) async throws

    /// A name for this process, as marks name it, if ``isRunning(_:)`` can say something about it; `nil`: it can't.
    ///
    /// A service asks once before each load, and gives the answer 5 s.
    var holder: String? { get async }

    /// Returns what is known of a holder: `false` only if it has certainly ended; `nil`: nothing is known.
    ///
    /// - Parameter holder: What that process's ``holder`` says.
    @concurrent func isRunning(_ holder: String) async -> Bool?
}

extension SharedTokenStore {
    /// Asks again after pauses that grow from 10 ms to a second, until the revision has changed or the limit has passed.
    ///
    /// - Parameters:
    ///   - revision: The revision of the record that the caller knows; `nil`: it knows that there is none.
    ///   - limit: How long to wait at most.
    @concurrent public func waitForChange(from revision: SharedRecord.Revision?, atMost limit: Duration) async throws {
        let end = ContinuousClock.now.advanced(by: limit)
        var pause = Duration.milliseconds(10)
        while ContinuousClock.now < end {
            // Lengthened by up to a quarter, so that those who wait together don't ask together.
            try await Task.sleep(for: min(pause * Double.random(in: 1...1.25), ContinuousClock.now.duration(to: end)))
            // A store that fails once may be better the next time.
            do { if try await load()?.revision != revision { return } } catch { try Task.checkCancellation() }
            pause = min(pause * 2, .seconds(1))
        }
    }

    /// None: the store can't say whether a process is running.
    public var holder: String? { nil }

    /// Nothing is known.
    ///
    /// - Parameter holder: What a process's ``holder`` says.
    @concurrent public func isRunning(_ holder: String) async -> Bool? { nil }
}

/// The record of a shared grant, as a store returned it.
public struct SharedRecord: Sendable, Hashable {
    /// Names one version of the record: no two versions have the same, and it is compared for equality only.
    public struct Revision: Sendable, Hashable {
        /// What the store uses: a number, an ETag, a version of a row.
        public var text: String

        /// Creates a revision.
        ///
        /// - Parameter text: What the store uses.
        public init(_ text: String) {
            self.text = text
        }
    }

    /// What came of a swap.
    public enum Swap: Sendable, Hashable {
        /// The record was replaced; it has this revision now.
        case done(Revision)
        /// The record has another revision than the caller thought; `nil`: there is none.
        case conflict(SharedRecord?)
    }

    /// What a service wrote.
    public var bytes: Data
    /// The version of the record.
    public var revision: Revision
    /// How long ago this version was written, at least; `nil`: the store can't tell.
    ///
    /// A service waits for a process that has ended in the middle of a load. With an age, that time counts from the load; without
    /// one, from when the service has first seen the record, so that a program which ends sooner never gets to its end. Take the age
    /// from one clock for all who share the record, such as the database's, and not from hosts that may disagree.
    public var age: Duration?
    /// Why the bytes are not those that a service wrote; `nil`: the store knows of no damage.
    ///
    /// Services throw it and leave the record as it is, until a user signs in or out: that replaces the record at this revision.
    public var damage: (any Error)?

    /// Creates a record.
    ///
    /// - Parameters:
    ///   - bytes: What a service wrote.
    ///   - revision: The version of the record.
    ///   - age: How long ago this version was written, at least; `nil`: the store can't tell.
    ///   - damage: Why the bytes are not those that a service wrote; `nil`: the store knows of no damage.
    public init(_ bytes: Data, revision: Revision, age: Duration? = nil, damage: (any Error)? = nil) {
        self.bytes = bytes
        self.revision = revision
        self.age = age
        self.damage = damage
    }

    /// Two are the same record if they have the same bytes and the same revision, however old they were when they were read.
    public static func == (a: SharedRecord, b: SharedRecord) -> Bool {
        a.revision == b.revision && a.bytes == b.bytes
    }

    /// Hashes the bytes and the revision.
    ///
    /// - Parameter hasher: Takes them.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(revision)
        hasher.combine(bytes)
    }
}
