import AccessTokens

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The file at a path, and what can be done with it; the calls block.
///
/// Each operation opens the directory once and works inside it, so that a directory that is moved meanwhile makes no difference.
package struct TokenFile: Sendable {
    package let path: String
    package let directory: String
    package let name: String

    /// Systems have names of 255 bytes; `.NAME.0123456789abcdef.alive` is the longest that is made of one.
    private static let longestName = 255 - 24

    /// - Parameter path: A complete path to a file; any other is an error of each operation.
    package init(path: String) {
        self.path = path
        let bytes = path.utf8
        let slash = bytes.lastIndex(of: UInt8(ascii: "/"))
        name = String(path[(slash.map { bytes.index(after: $0) } ?? path.startIndex)...])
        directory = slash.map { String(path[...$0]) } ?? ""
    }

    func load() throws(TokenFileError) -> StoredToken? { try load(in: try openDirectory()) }
    func save(_ stored: StoredToken) throws(TokenFileError) { try save(stored, in: try openDirectory()) }
    func remove() throws(TokenFileError) { try remove(in: try openDirectory()) }

    func load(in directory: borrowing OpenFile) throws(TokenFileError) -> StoredToken? {
        guard let file = try open(in: directory) else { return nil }
        let stored = try decode(try bytes(of: file))
        do {
            if try file.status().st_mode & 0o077 != 0 { try file.protect() }
        } catch { throw failure(.unprotected, error) }
        return stored
    }

    func save(_ stored: StoredToken, in directory: borrowing OpenFile) throws(TokenFileError) {
        let damaged = try damagedBytes(in: directory), bytes = try encode(stored)
        removeLeftovers(in: directory)
        do {
            if let damaged { try setAside(damaged, in: directory) }
            try replace(with: bytes, in: directory)
        } catch { throw failure(.writeFailed, error) }
    }

    /// What is in the file if that can't be read; throws if it can't be replaced either, since another program may read it.
    private func damagedBytes(in directory: borrowing OpenFile) throws(TokenFileError) -> [UInt8]? {
        guard let file = try open(in: directory) else { return nil }
        let bytes = try bytes(of: file)
        do { _ = try decode(bytes) } catch {
            guard error.code == .damaged else { throw error }
            return bytes
        }
        return nil
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
            // Asked first: a volume that can't be written must not make a sign-out fail that has nothing to remove.
            if try directory.status(of: aside) != nil { try unlink(aside, in: directory) }
            try directory.synchronize()
        } catch { throw failure(.removeFailed, error) }
    }

    package func openDirectory() throws(TokenFileError) -> OpenFile {
        // The system would take such a path for what stands before the NUL.
        guard !path.utf8.contains(0) else {
            throw TokenFileError(.invalidPath, path: path, detail: "it contains a NUL, where the system ends a path")
        }
        guard !["", ".", ".."].contains(name) else {
            throw TokenFileError(.invalidPath, path: path, detail: "it does not end in the name of a file")
        }
        // Else a token would be found missing, and loaded anew, at each start.
        guard name.utf8.count <= Self.longestName else {
            let detail = "its name has \(name.utf8.count) bytes, and only \(Self.longestName) leave room for temporary names"
            throw TokenFileError(.invalidPath, path: path, detail: detail)
        }
        guard path.utf8.first == UInt8(ascii: "/") else {
            throw TokenFileError(.invalidPath, path: path, detail: "it is relative, and the working directory was deleted")
        }
        do { return try OpenFile(directory: directory) } catch { throw failure(.noDirectory, error) }
    }

    /// Opens the file if it is there, whatever it is.
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
        do {
            let status = try file.status()
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw TokenFileError(.notATokenFile, path: path, detail: "it is a directory or a device")
            }
            // Before a byte of it is read: another user may have put it there.
            guard status.st_uid == geteuid() else { throw TokenFileError(ownedBy: status.st_uid, path: path) }
            let bytes = try file.read(upTo: StoredTokenFormat.largest + 1)
            guard bytes.count <= StoredTokenFormat.largest else {
                throw TokenFileError(.notATokenFile, path: path, detail: "it is larger than any token file")
            }
            return bytes
        } catch let error as SystemFailure {
            throw failure(.unreadable, error)
        } catch let error as TokenFileError {
            throw error
        } catch {
            throw TokenFileError(.unreadable, path: path, detail: "for an unknown reason")
        }
    }
}
