import AccessTokens
import AccessTokensFiles
import AccessTokensSharing
import Foundation

/// The file of a shared record, and its operations; the calls block.
///
/// Its first line names the format, the revision, and the time of writing:
/// `tokenservice.shared 1 REVISION BOOT UPTIME WALL sum=SUM`. The record follows; the sum is over its bytes.
///
/// A swap locks the record's own file, checks that the file still has its name, and renames another file over it. So process A
/// waits for the lock while process B swaps; then A finds that its file was replaced, and begins again with B's. A separate
/// lock file beside the record could be removed by a cleaner, and two processes would hold the lock. The first record is put in
/// place with a link, which fails if there is a record.
struct SharedFile: Sendable {
    let file: TokenFile

    /// How long a swap tries to get the lock.
    static let patience = KeyFolder.patience
    private static let marker = Array("tokenservice.shared 1 ".utf8)

    init(_ file: TokenFile) {
        self.file = file
    }

    func load() throws(TokenFileError) -> SharedRecord? { try load(in: try file.openDirectory()) }

    func swap(_ bytes: [UInt8], ifAt revision: SharedRecord.Revision?) throws(TokenFileError) -> SharedRecord.Swap {
        try swap(bytes, ifAt: revision, in: try file.openDirectory())
    }

    func load(in directory: borrowing OpenFile) throws(TokenFileError) -> SharedRecord? {
        guard let open = try file.open(in: directory) else { return nil }
        return try record(try file.bytes(of: open))
    }

    func swap(
        _ bytes: [UInt8], ifAt revision: SharedRecord.Revision?, in directory: borrowing OpenFile
    ) throws(TokenFileError) -> SharedRecord.Swap {
        let start = ContinuousClock.now
        while start.duration(to: .now) < Self.patience {
            if let open = try file.open(in: directory) {
                let old = try file.bytes(of: open), current = try record(old)
                guard current.revision == revision else { return .conflict(current) }
                let (contents, next) = try contents(bytes, after: current)
                if try replace(open, holding: current.damage == nil ? nil : old, with: contents, in: directory) {
                    return .done(next)
                }
            } else {
                guard revision == nil else { return .conflict(nil) }
                let (contents, next) = try contents(bytes, after: nil)
                if try create(contents, in: directory) { return .done(next) }
            }
            // Another swap is under way, or has just ended.
            usleep(.random(in: 200...2_000))
        }
        throw TokenFileError(lockedFor: Self.patience, path: file.path)
    }

    // MARK: The record

    private func record(_ bytes: [UInt8]) throws(TokenFileError) -> SharedRecord {
        guard bytes.prefix(Self.marker.count).elementsEqual(Self.marker.prefix(bytes.count)) else {
            throw TokenFileError(
                .notATokenFile, path: file.path, detail: "it doesn't begin with the header of this version's shared records")
        }
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")), end >= Self.marker.count else { return damaged(bytes) }
        var words = String(decoding: bytes[Self.marker.count..<end], as: UTF8.self).split(separator: " ")
        let record = bytes[(end + 1)...]
        // A record of an earlier version of this package has no sum.
        if let sum = words.last, sum.hasPrefix("sum=") {
            guard words.removeLast() == Self.sum(record) else { return damaged(bytes) }
        }
        let time = BootTime(words.dropFirst())
        return SharedRecord(
            Data(record), revision: .init(words.first.map { String($0) } ?? ""),
            age: time.flatMap { time in BootTime.now.map { time.age(at: $0) } })
    }

    /// A record for damaged bytes, whose revision lets a sign-in replace exactly these bytes.
    private func damaged(_ bytes: [UInt8]) -> SharedRecord {
        let detail = bytes.isEmpty ? "it is empty" : "it is cut off or altered"
        return SharedRecord(
            Data(bytes), revision: .init("damaged.\(bytes.count).\(Self.sum(bytes))"),
            damage: TokenFileError(.damaged, path: file.path, detail: detail))
    }

    private func contents(
        _ bytes: [UInt8], after record: SharedRecord?
    ) throws(TokenFileError) -> (contents: [UInt8], revision: SharedRecord.Revision) {
        let next = Self.revision(after: record), time = BootTime.now.map { " \($0.text)" } ?? ""
        let contents = Self.marker + Array("\(next.text)\(time) \(Self.sum(bytes))\n".utf8) + bytes
        guard contents.count <= StoredTokenFormat.largest else {
            throw TokenFileError(
                .writeFailed, path: file.path, detail: "the record is larger than \(StoredTokenFormat.largest) bytes")
        }
        return (contents, next)
    }

    /// Counts up and adds something random: a file that was removed by hand begins anew, and no revision may come twice.
    private static func revision(after record: SharedRecord?) -> SharedRecord.Revision {
        let count = record?.revision.text.split(separator: ".").first.flatMap { Int($0) } ?? 0
        return .init("\(count + 1).\(String(UInt64.random(in: .min ... .max), radix: 36))")
    }

    /// A checksum against truncated or accidentally altered records: FNV-1a, 64 bits.
    ///
    /// Source: draft-eastlake-fnv-21, §2.
    private static func sum(_ bytes: some Sequence<UInt8>) -> String {
        let sum = bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return "sum=" + String(sum, radix: 16)
    }

    // MARK: The file

    /// Replaces a record that was read, unless another swap of it is under way or has ended.
    ///
    /// - Parameter damaged: The bytes of the damaged record, to be kept beside the new one.
    private func replace(
        _ open: borrowing OpenFile, holding damaged: [UInt8]?, with contents: [UInt8], in directory: borrowing OpenFile
    ) throws(TokenFileError) -> Bool {
        do {
            guard try open.lock() else { return false }
            file.removeLeftovers(in: directory)
            if let damaged { try file.setAside(damaged, in: directory) }
            let temporary = try file.write(contents, in: directory)
            // Another swap may have ended before this one got the lock, or a person may have removed the record meanwhile.
            guard try open.isStillThere(as: file.name, in: directory) else {
                try? file.unlink(temporary.name, in: directory)
                return false
            }
            try file.rename(temporary, to: file.name, in: directory)
            return true
        } catch { throw file.failure(.writeFailed, error) }
    }

    /// Puts the first record in place, unless there is one already.
    private func create(_ contents: [UInt8], in directory: borrowing OpenFile) throws(TokenFileError) -> Bool {
        do {
            file.removeLeftovers(in: directory)
            return try file.create(from: try file.write(contents, in: directory), in: directory)
        } catch { throw file.failure(.writeFailed, error) }
    }
}
