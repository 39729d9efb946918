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
