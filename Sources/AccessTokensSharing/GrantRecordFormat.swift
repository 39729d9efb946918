import AccessTokens

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The bytes of a grant's record: one line of JSON, whose members `Docs/Sharing.md` describes.
///
/// A record of another version is an error and is never overwritten: two versions of a program may share a store.
enum GrantRecordFormat {
    static let version = 2

    /// Version 1 doesn't name the last sign-out, so a program that knows only version 1 must not overwrite version 2.
    private static let readable = 1...version

    /// The size of the largest record; far above what any server issues.
    static let largest = 1 << 20

    static func encode(_ record: GrantRecord) throws(GrantRecordError) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(Contents(record)) else { throw GrantRecordError(.notRepresentable) }
        guard data.count <= largest else { throw GrantRecordError(.tooLarge) }
        return data
    }

    static func decode(_ data: Data) throws(GrantRecordError) -> GrantRecord {
        let decoder = JSONDecoder()
        // The decoder's own errors quote the bytes, so they must not be passed on.
        guard let header = try? decoder.decode(Header.self, from: data), header.format == Contents.format else {
            throw GrantRecordError(.foreign)
        }
        guard readable.contains(header.version) else { throw GrantRecordError(.unsupportedVersion(header.version)) }
        // No fleet counts this far, and the next generation must be larger.
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
        let mark: Mark?
        let received: Double
        let signedOut: UInt64?
        let token: StoredTokenFormat.Token?
        let trouble: Trouble?
        let version: Int
        let write: String

        init(_ record: GrantRecord) {
            fence = record.fence.isEmpty ? nil : record.fence
            format = Self.format
            generation = record.generation
            mark = record.mark.map(Mark.init)
            received = record.received
            signedOut = record.signedOut > 0 ? record.signedOut : nil
            token = record.token.map(StoredTokenFormat.Token.init)
            trouble = record.trouble.map(Trouble.init)
            version = GrantRecordFormat.version
            write = record.write
        }

        var record: GrantRecord {
            var record = GrantRecord(write: write, generation: generation, token: token?.token, received: received)
            record.fence = fence ?? ""
            record.signedOut = signedOut ?? (record.isTombstone && fence != nil ? generation : 0)
            record.mark = mark.map { .init(owner: $0.owner, holder: $0.holder, limit: $0.limit.duration) }
            record.trouble = trouble?.trouble
            return record
        }
    }

    private struct Mark: Codable {
        let holder: String?
        let limit: StoredTokenFormat.Span
        let owner: String

        init(_ mark: GrantRecord.Mark) {
            (holder, limit, owner) = (mark.holder, .init(mark.limit), mark.owner)
        }
    }

    private struct Trouble: Codable {
        let failures: Int
        let owner: String
        let pause: StoredTokenFormat.Span
        let refused: Bool
        let refuser: String?
        let time: Double

        init(_ trouble: GrantRecord.Trouble) {
            (failures, owner, refused, time) = (trouble.failures, trouble.owner, trouble.isRefused, trouble.time)
            (pause, refuser) = (.init(trouble.pause), trouble.refuser)
        }

        /// In version 1 the first refusal counted for all.
        var trouble: GrantRecord.Trouble {
            .init(
                failures: failures, owner: owner, refuser: refuser, isRefused: refused && refuser != nil,
                pause: pause.duration, time: time)
        }
    }
}

/// Why the bytes of a shared store are not a usable record; quotes none of them.
struct GrantRecordError: Error, Equatable, CustomStringConvertible {
    enum Problem: Equatable {
        case foreign, damaged, unsupportedVersion(Int), notRepresentable, tooLarge
    }

    let problem: Problem

    init(_ problem: Problem) {
        self.problem = problem
    }

    var description: String {
        switch problem {
        case .foreign:
            "The shared store has bytes that no service wrote. They were left as they are: check which record it reads."
        case .damaged: "The shared store's record is damaged. It was left as it is: remove it and sign in again."
        case .unsupportedVersion(let version):
            "The shared store's record has version \(version), which this program doesn't know. It was left as it is: update "
                + "the program."
        case .notRepresentable: "The record's times are not numbers: check the clock."
        case .tooLarge: "A record may have 1 MiB at most: check what the authorization server issues."
        }
    }
}
