import AccessTokens

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The contents of a shared store's record: everything that a fleet of processes knows about its one grant, as a pure value.
struct GrantRecord: Sendable, Hashable {
    /// Announces that its holder is about to present the record's refresh token, in an exchange that takes no longer than the
    /// limit.
    struct Mark: Sendable, Hashable, Codable {
        /// The only service that may present the token.
        var owner: String
        /// The service's process, if the store can say whether it is running.
        var holder: String?
        /// How long its exchange may take, from the moment when the mark was written.
        @StoredTokenFormat.Span var limit: Duration
    }

    /// The fleet's failures since its last token: one count, and the pause that follows from it.
    struct Trouble: Sendable, Hashable, Codable {
        private enum CodingKeys: String, CodingKey {
            case failures, owner, refuser, isRefused = "refused", pause, time
        }

        var failures: Int
        /// The service that failed last, which uses its own pause instead.
        var owner: String
        /// The first service refused with this grant, among those that have received a token under the same sign-in.
        ///
        /// A service with a wrong client id is always refused, so its refusal doesn't count.
        var refuser: String?
        /// Whether another service was refused after it.
        ///
        /// If so, the grant counts as refused for all services until the pause is over.
        var isRefused: Bool
        /// How long the fleet waits before it asks the server again.
        @StoredTokenFormat.Span var pause: Duration
        /// When the last failure was written, on the writer's wall clock, in seconds since 2001.
        var time: Double
    }

    /// Identifies the write that produced the record, so that a service whose answer was lost recognises its own write.
    var write: String
    /// Identifies the sign-in or sign-out that began the record's session; marks, failures and new tokens don't change it.
    var fence = ""
    /// Increases with every token, sign-in and sign-out.
    var generation: UInt64
    /// The generation of the last sign-out, even if a sign-in followed; 0: there was none.
    var signedOut: UInt64 = 0
    /// The token; `nil`: signed out, or never signed in.
    var token: AccessToken?
    /// When the token's load began, on the wall clock, in seconds since 2001.
    var received: Double
    var mark: Mark?
    var trouble: Trouble?

    init(write: String, generation: UInt64, token: AccessToken? = nil, received: Double = 0) {
        self.write = write
        self.generation = generation
        self.token = token
        self.received = received
    }

    /// Stands for a record that was never written, or was removed.
    static let none = GrantRecord(write: "", generation: 0)

    /// Returns the generation to count from.
    ///
    /// A record that was removed and is written again must have a later generation than before, even if the service doesn't know
    /// the earlier one. So it starts from the current time.
    ///
    /// - Parameter seen: The latest generation that the service has seen.
    func generation(after seen: UInt64?, at time: Double?) -> UInt64 {
        max(generation, seen ?? 0, write.isEmpty ? Self.generation(at: time) : 0)
    }

    /// The time in microseconds since 2001, which no record reaches by counting; at most 2⁵³, which every JSON parser reads
    /// exactly.
    static func generation(at time: Double?) -> UInt64 { UInt64(min(max((time ?? 0) * 1e6, 0), 0x1p53)) }

    /// Whether the record was never written, or was removed, even if a service has written a mark since.
    var isBlank: Bool { isTombstone && fence.isEmpty }

    /// Whether the record is a tombstone, left by a sign-out.
    var isTombstone: Bool { token == nil }

    /// The age of its token, clamped to the token's lifetime, whatever the clocks say.
    func age(at time: Double?) -> Duration {
        let life = min(max(token?.lifetime ?? .zero, .zero), RefreshPolicy.longestLifetime)
        // If the clock has no valid time, the token counts as expired.
        guard let time, (time - received).isFinite else { return life }
        return .seconds(min(max(time - received, 0), life / .seconds(1)))
    }

    /// The rest of the pause after the fleet's last failure; at most the whole pause, whatever the clocks say.
    func pause(at time: Double?) -> Duration {
        guard let trouble, let time, (time - trouble.time).isFinite else { return .zero }
        return .seconds(min(max(trouble.pause / .seconds(1) - max(time - trouble.time, 0), 0), trouble.pause / .seconds(1)))
    }
}

// MARK: One service's knowledge of the record

extension SharedFlight {
    /// The knowledge that a session keeps from one flight to the next.
    struct Knowledge: Sendable, Hashable {
        /// A request of this service that got no answer, although its load has ended.
        struct Unanswered: Sendable, Hashable {
            /// The generation of the token that the request presents.
            var generation: UInt64
            var began: Duration
            /// When the request can no longer be under way.
            var end: Duration
        }

        /// The generation of the last token or tombstone that the service took over.
        var generation: UInt64?
        /// The latest generation that the service has seen; `nil`: it has yet to read the store.
        var seen: UInt64?
        /// The last sign-out that the service knows of, as ``GrantRecord/signedOut``; `nil`: it has yet to read the store.
        var signedOut: UInt64?
        /// The ``GrantRecord/fence`` of the session that the service knows; `nil`: it knows of no session.
        var session: String?
        var unanswered: Unanswered?
        /// The revision that was read last, and when it was written or, if the store can't tell, first seen; the doubt counts
        /// from then.
        var revision: SharedRecord.Revision?
        var since = Duration.zero
        /// The record at that revision, if it has no mark; the next flight may mark it without reading again.
        var unmarked: GrantRecord?
        /// The generation that counts as refused for all services, though this one wasn't refused itself.
        var refusedElsewhere: UInt64?
        /// The generation that was refused to this service, or for all; no later failure cancels a refusal.
        var refused: UInt64?
        /// The ``GrantRecord/fence`` under which this service has received a token, which shows that the server accepts its
        /// client.
        var served: String?
        /// How many records this service has written.
        var writes = 0
    }
}

extension SharedFlight.Knowledge {
    /// Adds what a flight has learnt; flights may end in another order than they began.
    ///
    /// - Parameter isFenced: Whether there was a sign-in or a sign-out since the flight began; then its record is outdated.
    mutating func learn(_ other: Self, isFenced: Bool) {
        writes = max(writes, other.writes)
        if !isFenced {
            generation = [generation, other.generation].compactMap { $0 }.max()
            seen = [seen, other.seen].compactMap { $0 }.max()
            refusedElsewhere = other.refusedElsewhere
            refused = other.refused ?? refused
            served = other.served ?? served
            signedOut = [signedOut, other.signedOut].compactMap { $0 }.max()
        }
        unanswered = [unanswered, other.unanswered].compactMap { $0 }.max { $0.end < $1.end }
        // The later of two reads counts.
        if revision == other.revision || since <= other.since {
            (revision, since, unmarked) = (other.revision, other.since, isFenced ? nil : other.unmarked)
            if !isFenced { session = other.session }
        }
    }

    /// Whether a record shows a sign-out that the service doesn't know of.
    func hasNews(_ record: GrantRecord?) -> Bool {
        if let record, let signedOut { signedOut < record.signedOut } else { false }
    }

    /// Whether a record is older than one that the service has seen.
    ///
    /// Its generation is lower or, after a backup was restored and renewed, it lacks a sign-out.
    func isNewer(than record: GrantRecord) -> Bool { record.generation < seen ?? 0 || record.signedOut < signedOut ?? 0 }

    /// Notes the record's session as known.
    mutating func meet(_ record: GrantRecord?) { session = record?.token == nil ? nil : record?.fence }

    /// Returns whether a record shows an unknown sign-out, and notes it; otherwise notes the record's session.
    ///
    /// A sign-in may have followed; flights that begin after the session has ended adopt it.
    mutating func learnSession(of record: GrantRecord) -> Bool {
        let isNews = hasNews(record)
        signedOut = max(signedOut ?? 0, record.signedOut)
        if isNews {
            (generation, session) = (record.signedOut, nil)
        } else if !isNewer(than: record) {
            meet(record)
        }
        return isNews
    }

    /// Notes that another service has ended the session: its token is adopted as if the service had read nothing yet.
    mutating func overtaken(signedOut last: UInt64) {
        (generation, signedOut, unmarked) = (nil, max(signedOut ?? 0, last), nil)
    }

    /// Notes that a sign-in or a sign-out of the service is in the store.
    ///
    /// - Parameter isRenewed: Whether another service has saved a token since, which hasn't been adopted yet.
    mutating func take(_ record: GrantRecord, isRenewed: Bool) {
        if !isRenewed { generation = record.generation }
        unmarked = nil
        signedOut = record.signedOut
        meet(record)
        // A sign-in's token comes from the server, so the server accepts this client.
        served = record.fence
        seen = max(seen ?? 0, record.generation)
    }
}

// MARK: The record as bytes

/// The bytes of a grant's record: one line of JSON, whose members `Docs/Sharing.md` describes.
///
/// A record of another version is an error and is never overwritten: two versions of a program may share a store.
enum GrantRecordFormat {
    static let version = 2

    /// Version 1 doesn't name the last sign-out, so a program that supports only version 1 must not overwrite a record of version
    /// 2.
    private static let readable = 1...version

    static func encode(_ record: GrantRecord) throws(GrantRecordError) -> Data {
        do { return try StoredTokenFormat.json(Contents(record)) } catch { throw GrantRecordError(error) }
    }

    static func decode(_ data: Data) throws(GrantRecordError) -> GrantRecord {
        let decoder = JSONDecoder()
        // The decoder's own errors quote the bytes, so they must not be passed on.
        guard let header = try? decoder.decode(Header.self, from: data), header.format == Contents.format else {
            throw GrantRecordError(.foreign)
        }
        guard readable.contains(header.version) else { throw GrantRecordError(.unsupportedVersion(header.version)) }
        // No fleet reaches this number, and the next generation must be larger.
        guard let contents = try? decoder.decode(Contents.self, from: data), contents.generation < UInt64.max / 2 else {
            throw GrantRecordError(.damaged)
        }
        return contents.record
    }

    private struct Header: Decodable {
        let format: String
        let version: Int
    }

    private struct Contents: Codable {
        static let format = "tokenservice.grant"

        let fence: String?
        let format: String
        let generation: UInt64
        let mark: GrantRecord.Mark?
        let received: Double
        let signedOut: UInt64?
        let token: StoredTokenFormat.Token?
        let trouble: GrantRecord.Trouble?
        let version: Int
        let write: String

        init(_ record: GrantRecord) {
            fence = record.fence.isEmpty ? nil : record.fence
            format = Self.format
            generation = record.generation
            mark = record.mark
            received = record.received
            signedOut = record.signedOut > 0 ? record.signedOut : nil
            token = record.token.map(StoredTokenFormat.Token.init)
            trouble = record.trouble
            version = GrantRecordFormat.version
            write = record.write
        }

        var record: GrantRecord {
            var record = GrantRecord(write: write, generation: generation, token: token?.token, received: received)
            record.fence = fence ?? ""
            record.signedOut = signedOut ?? (record.isTombstone && fence != nil ? generation : 0)
            (record.mark, record.trouble) = (mark, trouble)
            // In version 1 the first refusal counted for all.
            if trouble?.refuser == nil { record.trouble?.isRefused = false }
            return record
        }
    }
}

/// Why the bytes of a shared store are not a usable record; quotes none of them.
struct GrantRecordError: Error, Equatable, CustomStringConvertible {
    let problem: StoredTokenFormat.Problem

    init(_ problem: StoredTokenFormat.Problem) {
        self.problem = problem
    }

    var description: String {
        switch problem {
        case .foreign:
            "The shared store has bytes that no service wrote. They were left unchanged: check which record it reads."
        case .damaged: "The shared store's record is damaged. It was left unchanged: remove it and sign in again."
        case .unsupportedVersion(let version):
            "The shared store's record has version \(version), which this program can't read. It was left unchanged: update "
                + "the program."
        case .notRepresentable: "The record's times are not numbers: check the wall clock."
        case .tooLarge: "The record would have more than 1 MiB: check what the authorization server issues."
        }
    }
}
