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
        /// When the last failure was written, on the writer's wall clock, in seconds since 2001; only a service that reads the
        /// record for the first time compares it with its own clock.
        var time: Double

        /// The rest of the pause for a service that reads the record for the first time.
        ///
        /// - Parameters:
        ///   - age: How long ago this version of the record was written, if the store can tell.
        ///   - wall: The time on the service's wall clock.
        func rest(forNewcomerAt wall: Double?, age: Duration?) -> Duration {
            let passed = wall.map { $0 - time }.flatMap { $0.isFinite ? $0 : nil }
            // Two wall clocks that contradict each other, by more than clocks in step do, tell nothing. A short-lived program that
            // waited for the whole pause, each time it starts, would never load.
            guard let passed, passed > -1 else { return age.map { max(pause - $0, .zero) } ?? .zero }
            let elapsed = max(min(passed, pause / .seconds(1)), 0)
            return max(pause - max(.seconds(elapsed), age ?? .zero), .zero)
        }
    }

    /// Identifies the write that produced the record, so that a service whose response was lost recognises its own write.
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
    var received = 0.0
    var mark: Mark?
    var trouble: Trouble?

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
        let life = RefreshPolicy.counted(token?.lifetime ?? .zero)
        // If the clock has no valid time, the token counts as expired.
        guard let time, (time - received).isFinite else { return life }
        return .seconds(min(max(time - received, 0), life / .seconds(1)))
    }
}

// MARK: One service's knowledge of the record

extension SharedFlight {
    /// The knowledge that a session keeps from one flight to the next.
    struct Knowledge: Sendable, Hashable {
        /// The version of the record that was read last, and the moments that decide how long its mark is respected; all of them
        /// are on the service's own clock.
        struct Sight: Sendable, Hashable {
            /// `nil`: there was no record.
            var revision: SharedRecord.Revision?
            /// When this version was read first.
            var first: Duration
            /// When it was read last.
            var last: Duration
            /// When it was written, as far as the service knows.
            var since: Duration
            /// Whether the store measures ages by a clock that can't be set.
            var isAgeSteady = false
            /// Since when the store has responded, once the mark's time is nearly over.
            var watched: Duration?
        }

        /// The generation of the last token or tombstone that the service took over.
        var generation: UInt64?
        /// The latest generation that the service has seen; `nil`: it has yet to read the store.
        var seen: UInt64?
        /// The last sign-out that the service knows of, as ``GrantRecord/signedOut``; `nil`: it has yet to read the store.
        var signedOut: UInt64?
        /// The ``GrantRecord/fence`` of the session that the service knows; `nil`: it knows of no session.
        var session: String?
        /// The generation of the token whose last request got no response.
        var unanswered: UInt64?
        /// What was read last; `nil`: the service has yet to read the store.
        var sight: Sight?
        /// The fleet's last failures, and when the pause after them ends on the service's own clock.
        var trouble: GrantRecord.Trouble?
        var pauseEnd = Duration.zero
        /// Whether the service's last write failed, or may have failed.
        var hasFailedToWrite = false
        /// Until when a holder whose saves the store refused may still save its token.
        var lateSaveEnd = Duration.zero
        /// How long the service's last successful load took; `nil`: it has had none.
        var loadTime: Duration?
        /// The record at the revision that was read last, if it has no mark; the next flight may mark it without reading again.
        var unmarked: GrantRecord?
        /// The generation that counts as refused for all services, though this one wasn't refused itself.
        var refusedElsewhere: UInt64?
        /// The generation that was refused to this service, or for all; no later failure cancels a refusal.
        var refused: UInt64?
        /// The ``GrantRecord/fence`` under which this service has received a token, which shows that the server accepts its
        /// client.
        var served: String?
        /// How many writes this service has begun.
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
        unanswered = other.unanswered ?? unanswered
        loadTime = other.loadTime ?? loadTime
        (hasFailedToWrite, lateSaveEnd) = (other.hasFailedToWrite, max(lateSaveEnd, other.lateSaveEnd))
        guard let seen = other.sight else { return }
        // The later of two reads counts.
        if let sight, sight.revision != seen.revision, seen.last < sight.last { return }
        (sight, unmarked) = (seen.earlier(than: sight), isFenced ? nil : other.unmarked)
        (trouble, pauseEnd) = (other.trouble, other.trouble == trouble ? min(pauseEnd, other.pauseEnd) : other.pauseEnd)
        if !isFenced { session = other.session }
    }

    /// Notes a record that was read, or that this service has written.
    mutating func see(_ sighting: SharedFlight.Sighting?, at moment: SharedFlight.Moment) {
        let last = sight
        seen = max(seen ?? 0, sighting?.record.generation ?? 0)
        sight = Sight(of: sighting, at: moment.now, after: last)
        unmarked = sighting.flatMap { $0.record.mark == nil ? $0.record : nil }
        // Marks leave the failures as they are, so the pause doesn't begin again with each version of the record.
        guard trouble != sighting?.record.trouble || last == nil else { return }
        trouble = sighting?.record.trouble
        guard let trouble, let sight else { return }
        pauseEnd =
            last == nil
            ? moment.now + trouble.rest(forNewcomerAt: moment.wall, age: sighting?.age) : sight.since + trouble.pause
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

extension SharedFlight.Knowledge.Sight {
    /// - Parameter last: What the service read before; this version was written after that, if it is another one.
    fileprivate init(of sighting: SharedFlight.Sighting?, at now: Duration, after last: Self?) {
        let told = sighting?.age.map { now - $0 } ?? now
        isAgeSteady = sighting?.isAgeSteady ?? false
        revision = sighting?.revision
        self.last = now
        guard let last, last.revision == revision else {
            (first, since) = (now, last.map { max(told, $0.last) } ?? told)
            return
        }
        (first, watched) = (last.first, last.watched)
        // If the store's clock steps forward, the first read was right; if it steps back, time has passed on this service's clock
        // all the same. A clock that can't be set may stop, though, while the machine sleeps.
        since = isAgeSteady ? told : min(max(last.since, told), first)
    }

    /// Returns this sight, but as early as another flight has seen the same version.
    fileprivate func earlier(than other: Self?) -> Self {
        guard let other, other.revision == revision, other.first < first else { return self }
        var sight = self
        sight.first = other.first
        if !isAgeSteady { sight.since = min(since, other.first) }
        return sight
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
