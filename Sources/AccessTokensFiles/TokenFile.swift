import AccessTokens
import Foundation
import TokenServiceConcurrency

/// The file at a path, and its operations; the calls block.
///
/// Each operation opens the directory once and works inside it, so a directory that is moved meanwhile does no harm.
package struct TokenFile: Sendable {
    package let path: String
    private let directory: String
    package let name: String
    /// What the file contains, for errors.
    private let contents: String
    private let grants = KnownGrants()

    /// Systems allow names of 255 bytes; the longest name derived from the file's is `.NAME.0123456789abcdef.alive`.
    private static let longestName = 255 - 24

    /// - Parameter path: An absolute path to a file; with any other, each operation throws.
    package init(path: String, of contents: String = "the token") {
        self.path = path
        self.contents = contents
        let bytes = path.utf8
        let slash = bytes.lastIndex(of: UInt8(ascii: "/"))
        name = String(path[(slash.map { bytes.index(after: $0) } ?? path.startIndex)...])
        directory = slash.map { String(path[...$0]) } ?? ""
    }

    func load() throws(TokenFileError) -> StoredToken? { try load(in: try openDirectory()) }
    func save(_ stored: StoredToken) throws(TokenFileError) { try save(stored, in: try openDirectory()) }
    func remove() throws(TokenFileError) { try remove(in: try openDirectory()) }

    func load(in directory: borrowing OpenFile) throws(TokenFileError) -> StoredToken? {
        guard let file = try open(in: directory) else {
            grants.find(nil)
            return nil
        }
        let stored = try decode(try bytes(of: file))
        do {
            if try file.status().st_mode & 0o077 != 0 { try file.protect() }
        } catch { throw failure(.unprotected, error) }
        grants.find(stored.token.refreshToken)
        return stored
    }

    func save(_ stored: StoredToken, in directory: borrowing OpenFile) throws(TokenFileError) {
        let last = try replaceable(in: directory), bytes = try encode(stored)
        let isOthers = grants.replace(last.grant, with: stored.token.refreshToken)
        removeLeftovers(in: directory)
        do {
            if let damaged = last.damaged { try setAside(damaged, in: directory) }
            try rename(try write(bytes, in: directory), to: name, in: directory)
        } catch { throw failure(.writeFailed, error) }
        if isOthers {
            throw TokenFileError(.changedElsewhere, path: path, detail: "its refresh token was neither read nor written here")
        }
    }

    /// Returns the file's refresh token or, if it is damaged, its bytes; throws if the file must not be replaced, since another
    /// program may read it.
    private func replaceable(in directory: borrowing OpenFile) throws(TokenFileError) -> (grant: String?, damaged: [UInt8]?) {
        guard let file = try open(in: directory) else { return (nil, nil) }
        let bytes = try bytes(of: file)
        do { return (try decode(bytes).token.refreshToken, nil) } catch {
            guard error.code == .damaged else { throw error }
            return (nil, bytes)
        }
    }

    func remove(in directory: borrowing OpenFile) throws(TokenFileError) {
        let isThere: Bool
        if let file = try open(in: directory) {
            guard StoredTokenFormat.beginsLikeTokenFile(try bytes(of: file)) else { throw problem(.foreign) }
            isThere = true
        } else {
            isThere = false
        }
        removeLeftovers(in: directory)
        do {
            if isThere { try unlink(name, in: directory) }
            // Checked first: a sign-out with nothing to remove must not fail on a read-only volume.
            if try directory.status(of: aside) != nil { try unlink(aside, in: directory) }
            try directory.synchronize()
        } catch { throw failure(.removeFailed, error) }
    }

    package func openDirectory() throws(TokenFileError) -> OpenFile {
        // The system would use only the part of the path before the NUL.
        guard !path.utf8.contains(0) else {
            throw TokenFileError(.invalidPath, path: path, detail: "it contains a NUL character")
        }
        guard !["", ".", ".."].contains(name) else {
            throw TokenFileError(.invalidPath, path: path, detail: "it does not end in the name of a file")
        }
        // Otherwise the save would fail each time, and each start would load a new token.
        guard name.utf8.count <= Self.longestName else {
            let detail = "its name has \(name.utf8.count) bytes; at most \(Self.longestName) leave room for temporary names"
            throw TokenFileError(.invalidPath, path: path, detail: detail)
        }
        guard path.utf8.first == UInt8(ascii: "/") else {
            throw TokenFileError(.invalidPath, path: path, detail: "it is relative, and the working directory was deleted")
        }
        do { return try OpenFile(directory: directory) } catch { throw failure(.noDirectory, error) }
    }

    /// Opens whatever is at the path, if anything is.
    package func open(in directory: borrowing OpenFile) throws(TokenFileError) -> OpenFile? {
        do {
            return try OpenFile(name, in: directory)
        } catch {
            switch error.number {
            case ENOENT: return nil
            case ELOOP: throw TokenFileError(.notATokenFile, path: path, detail: "it is a symbolic link")
            default: throw failure(.unreadable, error)
            }
        }
    }

    package func bytes(of file: borrowing OpenFile) throws(TokenFileError) -> [UInt8] {
        let status: stat, bytes: [UInt8]
        do { status = try file.status() } catch { throw failure(.unreadable, error) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw TokenFileError(.notATokenFile, path: path, detail: "it is a directory or a device")
        }
        // Checked before a byte is read: another user may have put the file there.
        guard status.st_uid == geteuid() else { throw TokenFileError(ownedBy: status.st_uid, path: path) }
        do { bytes = try file.read(upTo: StoredTokenFormat.largest + 1) } catch { throw failure(.unreadable, error) }
        guard bytes.count <= StoredTokenFormat.largest else {
            throw TokenFileError(.notATokenFile, path: path, detail: "it is larger than any token file")
        }
        return bytes
    }
}

/// The refresh tokens, as hashes, that a store last read in its file and then wrote, or perhaps wrote; empty before its first read.
///
/// Any other was saved by another store, whose service may have spent the same token.
private final class KnownGrants: Sendable {
    private let known = Lock<[Int]>([])

    func find(_ grant: String?) { known.withLock { $0 = [grant.hashValue] } }

    /// Notes what is about to replace what the file has; returns whether that is another store's.
    func replace(_ found: String?, with grant: String?) -> Bool {
        known.withLock { known in
            defer { known = [found.hashValue, grant.hashValue] }
            return found != nil && !known.isEmpty && !known.contains(found.hashValue)
        }
    }
}

/// Reports the format's and the system's problems as errors of this file.
extension TokenFile {
    private func encode(_ stored: StoredToken) throws(TokenFileError) -> [UInt8] {
        do { return try StoredTokenFormat.encode(stored) } catch { throw problem(error) }
    }

    private func decode(_ bytes: [UInt8]) throws(TokenFileError) -> StoredToken {
        do { return try StoredTokenFormat.decode(bytes) } catch {
            throw bytes.isEmpty ? TokenFileError(.damaged, path: path, detail: "it is empty") : problem(error)
        }
    }

    private func problem(_ problem: StoredTokenFormat.Problem) -> TokenFileError {
        switch problem {
        case .foreign: TokenFileError(.notATokenFile, path: path, detail: "it doesn't begin with a token file's header")
        case .damaged: TokenFileError(.damaged, path: path, detail: "it is cut off or altered")
        case .unsupportedVersion(let version):
            TokenFileError(.unsupportedVersion, path: path, detail: "version \(version), not \(StoredTokenFormat.version)")
        case .notRepresentable:
            TokenFileError(.writeFailed, path: path, detail: "the time of its receipt is not a finite number")
        case .tooLarge:
            TokenFileError(.writeFailed, path: path, detail: "\(contents) is larger than \(StoredTokenFormat.largest) bytes")
        }
    }

    package func failure(_ code: TokenFileError.Code, _ failure: SystemFailure) -> TokenFileError {
        TokenFileError(code, path: path, failure)
    }
}

/// The temporary files: `.NAME.0123456789abcdef.tmp` beside `NAME`.
///
/// The process that writes a temporary file has it locked, and the system unlocks it when the process ends, for whatever reason.
/// So a file that can be locked is a leftover, and one that can't belongs to a running save, in this process or another.
extension TokenFile {
    /// Keeps unreadable bytes beside the file that replaces them; only the latest ones.
    package func setAside(_ bytes: [UInt8], in directory: borrowing OpenFile) throws(SystemFailure) {
        if !bytes.isEmpty { try rename(try write(bytes, in: directory), to: aside, in: directory) }
    }

    /// The name for unreadable bytes: `.NAME.damaged`.
    var aside: String { prefix + "damaged" }

    /// Writes the bytes to a temporary file and waits until the disk has them.
    package func write(_ bytes: [UInt8], in directory: borrowing OpenFile) throws(SystemFailure) -> Temporary {
        let temporary = try createTemporary(in: directory)
        do {
            try temporary.file.write(bytes)
            try temporary.file.synchronize()
        } catch {
            try? unlink(temporary.name, in: directory)
            throw error
        }
        return temporary
    }

    /// Gives a temporary file another name, replacing the file of that name, and waits for the directory.
    package func rename(
        _ temporary: consuming Temporary, to name: String, in directory: borrowing OpenFile
    ) throws(SystemFailure) {
        let parent = directory.descriptor, old = temporary.name
        do { _ = try systemCall { unsafe renameat(parent, old, parent, name) } } catch {
            try? unlink(old, in: directory)
            throw error
        }
        try directory.synchronize()
    }

    /// Gives a temporary file the token file's name and waits for the directory; `false` if a file of that name exists.
    package func create(from temporary: consuming Temporary, in directory: borrowing OpenFile) throws(SystemFailure) -> Bool {
        let parent = directory.descriptor, old = temporary.name
        do { _ = try systemCall { unsafe linkat(parent, old, parent, name, 0) } } catch {
            try? unlink(old, in: directory)
            if error.number == EEXIST { return false }
            throw error
        }
        try unlink(old, in: directory)
        try directory.synchronize()
        return true
    }

    private func createTemporary(in directory: borrowing OpenFile) throws(SystemFailure) -> Temporary {
        while true {
            let temporary = prefix + Self.newDigits() + Self.suffix
            let file: OpenFile
            do {
                file = try OpenFile(temporary, in: directory, O_WRONLY | O_CREAT | O_EXCL)
            } catch {
                if error.number == EEXIST { continue }
                throw error
            }
            do {
                try file.protect()
                // Another process's clean-up can come between the creation and the lock, and mistake the file for a leftover.
                // Then that process has the lock, or the name is gone. On a volume without locks there is no clean-up either.
                guard (try? file.lock()) ?? true else { continue }
                _ = try OpenFile(temporary, in: directory)
            } catch {
                if error.number == ENOENT { continue }
                try? unlink(temporary, in: directory)
                throw error
            }
            return Temporary(name: temporary, file: file)
        }
    }

    /// Removes the temporary files of killed processes, as far as possible.
    ///
    /// A failure is ignored, so that it neither prevents a save nor reports a removed token as kept; the next operation tries
    /// again.
    package func removeLeftovers(in directory: borrowing OpenFile) {
        for entry in (try? directory.names()) ?? [] where isTemporary(entry) {
            guard let file = try? OpenFile(entry, in: directory), (try? file.lock()) ?? false else { continue }
            try? unlink(entry, in: directory)
        }
    }

    /// Whether a save of this token file uses such a name; compared byte by byte, as the system does.
    func isTemporary(_ entry: String) -> Bool {
        let bytes = Array(entry.utf8)
        guard bytes.count == prefix.utf8.count + 16 + Self.suffix.utf8.count, bytes.starts(with: prefix.utf8) else {
            return false
        }
        let rest = bytes.dropFirst(prefix.utf8.count)
        return Self.areDigits(rest.prefix(16)) && rest.dropFirst(16).elementsEqual(Self.suffix.utf8)
    }

    /// 16 hexadecimal digits that no other file has.
    package static func newDigits() -> String {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    package static func areDigits(_ text: some Sequence<UInt8>) -> Bool {
        text.allSatisfy { "0123456789abcdef".utf8.contains($0) }
    }

    package func unlink(_ name: String, in directory: borrowing OpenFile) throws(SystemFailure) {
        let parent = directory.descriptor
        do {
            _ = try systemCall { unsafe unlinkat(parent, name, 0) }
        } catch {
            if error.number != ENOENT { throw error }
        }
    }

    /// A temporary file, locked as long as this value lives.
    package struct Temporary: ~Copyable {
        package let name: String
        let file: OpenFile
    }

    private var prefix: String { ".\(name)." }
    private static let suffix = ".tmp"
}
