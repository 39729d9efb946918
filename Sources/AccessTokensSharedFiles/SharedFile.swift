import AccessTokens
import AccessTokensFiles
import AccessTokensSharing
import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The file of a shared record, and what can be done with it; the calls block.
///
/// Its first line says what it is, which revision, and when that was written: `tokenservice.shared 1 REVISION BOOT UPTIME WALL`. The
/// record follows.
struct SharedFile: Sendable {
    let file: TokenFile

    /// How long a swap tries to get the lock.
    ///
    /// Less than the 5 s that a service waits, so that its callers learn why.
    static let patience = 4.0
    private static let marker = "tokenservice.shared 1 "

    init(_ path: String) {
        file = TokenFile(path: path)
    }

    func load() throws(TokenFileError) -> SharedRecord? {
        try load(in: try file.openDirectory())
    }

    private func load(in directory: borrowing OpenFile) throws(TokenFileError) -> SharedRecord? {
        guard let open = try file.open(in: directory) else { return nil }
        let bytes = try file.bytes(of: open)
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")), bytes.starts(with: Self.marker.utf8) else {
            throw TokenFileError(
                .notATokenFile, path: file.path, detail: "it does not begin like a shared record of this version")
        }
        let words = String(decoding: bytes[Self.marker.utf8.count..<end], as: UTF8.self).split(separator: " ")
        let time = BootTime(words.dropFirst())
        return SharedRecord(
            Data(bytes[(end + 1)...]), revision: .init(words.first.map { String($0) } ?? ""),
            age: time.flatMap { time in BootTime.now.map { time.age(at: $0) } })
    }

    func swap(_ bytes: [UInt8], ifAt revision: SharedRecord.Revision?) throws(TokenFileError) -> SharedRecord.Swap {
        let directory = try file.openDirectory()
        // Released at the end of this call, or by the system when the process dies.
        let lock = try lock(in: directory)
        let current = try load(in: directory)
        guard current?.revision == revision else { return .conflict(current) }
        let next = Self.revision(after: current)
        let time = BootTime.now.map { " \($0.text)" } ?? ""
        let contents = Array("\(Self.marker)\(next.text)\(time)\n".utf8) + bytes
        guard contents.count <= StoredTokenFormat.largest else {
            throw TokenFileError(
                .writeFailed, path: file.path, detail: "the record is larger than \(StoredTokenFormat.largest) bytes")
        }
        do { try replace(with: contents, in: directory) } catch { throw file.failure(.writeFailed, error) }
        _ = consume lock
        return .done(next)
    }

    /// Counts, with something random: a file that was removed by hand begins anew, and no revision may come twice.
    private static func revision(after record: SharedRecord?) -> SharedRecord.Revision {
        let count = record?.revision.text.split(separator: ".").first.flatMap { Int($0) } ?? 0
        return .init("\(count + 1).\(String(UInt64.random(in: .min ... .max), radix: 36))")
    }

    /// Puts the bytes in the file's place; under the lock one temporary file is enough, and the next swap writes over a left one.
    private func replace(with bytes: [UInt8], in directory: borrowing OpenFile) throws(SystemFailure) {
        let name = ".\(file.name).next", parent = directory.descriptor, target = file.name
        do {
            let temporary = try OpenFile(name, in: directory, O_WRONLY | O_CREAT | O_TRUNC)
            try temporary.protect()
            try temporary.write(bytes)
            try temporary.synchronize()
            _ = try systemCall { unsafe renameat(parent, name, parent, target) }
        } catch {
            try? file.unlink(name, in: directory)
            throw error
        }
        try directory.synchronize()
    }

    /// Locks the file beside the record, which stays where it is: the record itself is renamed over.
    private func lock(in directory: borrowing OpenFile) throws(TokenFileError) -> OpenFile {
        let name = ".\(file.name).lock", start = Date()
        do {
            while true {
                let lock = try OpenFile(name, in: directory, O_RDWR | O_CREAT)
                // A lock file that was removed meanwhile is not the one that others see.
                if try lock.lock(), try lock.isStillThere(as: name, in: directory) { return lock }
                guard abs(start.timeIntervalSinceNow) < Self.patience else { break }
                usleep(.random(in: 200...2_000))
            }
        } catch { throw file.failure(.writeFailed, error) }
        throw TokenFileError(.locked, path: file.path, detail: "other processes have had it locked for \(Int(Self.patience)) s")
    }
}
