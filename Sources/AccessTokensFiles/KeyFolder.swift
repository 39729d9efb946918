import AccessTokens
import Foundation
import TokenServiceConcurrency

/// The directory of one key, named by the SHA-256 of the key's name, which is the first thing written into it; the calls block.
///
/// Strings that Swift calls equal are one key, whatever their Unicode characters: either one finds the service.
///
/// Changes lock the directory itself, which is never replaced, so that saves and removals run one after another, even in two
/// processes. After a wait for the lock, a removal may have removed the directory: then a save makes another one.
package struct KeyFolder: Sendable {
    package let path: String
    private let parent: String
    private let folder: String
    private let text: String
    private let name: TokenFile

    /// How long an operation tries to get the lock: less than the 5 s that a service waits, so that callers get this error.
    package static let patience = Duration.seconds(4)

    package init(of text: String, in parent: String) {
        self.text = text
        self.parent = parent
        folder = Self.folder(of: text)
        path = parent + "/" + folder
        name = Self.name(in: path)
    }

    private static func name(in path: String) -> TokenFile { TokenFile(path: path + "/key", of: "the key's name") }

    private static func folder(of text: String) -> String {
        SHA256.hexadecimal(of: text.precomposedStringWithCanonicalMapping)
    }

    // MARK: One key

    /// A file in the directory.
    package func file(_ name: String) -> TokenFile { TokenFile(path: path + "/" + name) }

    /// Opens the directory; `nil` if the key has none.
    ///
    /// Throws if that can't be determined, or if the directory belongs to another key.
    package func open() throws(TokenFileError) -> OpenFile? {
        let all = try Self.open(parent)
        guard let directory = try Self.open(folder, path, in: all) else { return nil }
        _ = try isNamed(directory)
        return directory
    }

    /// Opens and locks the directory for a save; creates it with the key's name in it.
    ///
    /// A sign-out of many keys must find the name before there is a token.
    package func prepare() throws(TokenFileError) -> OpenFile {
        let all = try Self.open(parent)
        while true {
            if let directory = try openLocked(in: all) {
                if try !isNamed(directory) {
                    try name.save(StoredToken(AccessToken(text), received: Date(timeIntervalSince1970: 0)), in: directory)
                }
                return directory
            }
            do {
                try all.makeDirectory(folder)
                try all.synchronize()
            } catch { throw TokenFileError(.writeFailed, path: path, error) }
        }
    }

    /// Removes a file and the directory.
    func remove(_ file: TokenFile) throws(TokenFileError) {
        let all = try Self.open(parent)
        guard let directory = try openLocked(in: all) else { return }
        _ = try isNamed(directory)
        try file.remove(in: directory)
        try name.remove(in: directory)
        // Anything else in the directory stays, and the directory with it.
        try? all.removeDirectory(folder)
        _ = consume directory
    }

    /// Whether the directory contains its key's name; throws if it contains another key's.
    private func isNamed(_ directory: borrowing OpenFile) throws(TokenFileError) -> Bool {
        let found: String?
        do { found = try name.load(in: directory)?.token.value } catch {
            // The directory's own name identifies the key until a save writes the key's name again.
            guard error.code == .damaged else { throw error }
            return false
        }
        guard let found else { return false }
        guard found == text else { throw Self.isOthers(path) }
        return true
    }

    private func openLocked(in all: borrowing OpenFile) throws(TokenFileError) -> OpenFile? {
        while true {
            guard let directory = try Self.open(folder, path, in: all) else { return nil }
            let isLocked: Bool, isThere: Bool
            do {
                isLocked = try directory.lock(trying: Self.patience)
                isThere = try directory.isStillThere(as: folder, in: all)
            } catch { throw TokenFileError(.writeFailed, path: path, error) }
            guard isLocked else { throw TokenFileError(lockedFor: Self.patience, path: path) }
            if isThere { return directory }
        }
    }

    // MARK: All keys

    /// Calls `body` with the names of the keys whose directories have a file, or a leftover of its save, as soon as each is
    /// found.
    ///
    /// An unreadable name doesn't hide the others: the function throws at the end.
    package static func names(
        in parent: String, having file: String, _ body: (String) -> Void
    ) throws(TokenFileError) {
        let all = try open(parent)
        let folders: [String]
        do { folders = try all.names() } catch { throw TokenFileError(.noDirectory, path: parent, error) }
        var problem: TokenFileError?
        for folder in folders where isFolder(folder) {
            do throws(TokenFileError) {
                if let name = try name(of: folder, in: all, parent + "/" + folder, having: file) { body(name) }
            } catch {
                problem = problem ?? error
            }
        }
        if let problem { throw problem }
    }

    private static func name(
        of folder: String, in all: borrowing OpenFile, _ path: String, having file: String
    ) throws(TokenFileError) -> String? {
        guard let directory = try open(folder, path, in: all) else { return nil }
        let file = TokenFile(path: path + "/" + file)
        guard try has(file, in: directory) else { return nil }
        let stored = try name(in: path).load(in: directory)
        // A removal deletes the file before the name.
        guard let name = stored?.token.value else {
            guard try has(file, in: directory) else { return nil }
            throw TokenFileError(.damaged, path: path + "/key", detail: "it is missing, so the token's key is unknown")
        }
        guard self.folder(of: name) == folder else { throw isOthers(path) }
        return name
    }

    /// Whether a name is that of a key's directory; anything else was not written by this store.
    private static func isFolder(_ entry: String) -> Bool {
        entry.utf8.count == 64 && TokenFile.areDigits(entry.utf8)
    }

    /// Whether there is a file, or a temporary file that may have its bytes, which a killed process may have left.
    private static func has(_ file: TokenFile, in directory: borrowing OpenFile) throws(TokenFileError) -> Bool {
        do {
            if try directory.status(of: file.name) != nil { return true }
            return try directory.names().contains { $0 == file.aside || file.isTemporary($0) }
        } catch { throw TokenFileError(.unreadable, path: file.path, error) }
    }

    private static func isOthers(_ path: String) -> TokenFileError {
        TokenFileError(.otherKey, path: path, detail: "the file “key” in it names another key")
    }

    // MARK: Directories

    private static func open(_ directory: String) throws(TokenFileError) -> OpenFile {
        guard !directory.isEmpty else {
            throw TokenFileError(.invalidPath, path: directory, detail: "it is empty")
        }
        let all: OpenFile
        do { all = try OpenFile(directory: directory) } catch { throw TokenFileError(.noDirectory, path: directory, error) }
        try close(all, directory, to: 0o022, isKey: false)
        return all
    }

    private static func open(_ folder: String, _ path: String, in all: borrowing OpenFile) throws(TokenFileError) -> OpenFile? {
        let directory: OpenFile
        do { directory = try OpenFile(directory: folder, in: all) } catch {
            // Any other error says nothing about the key.
            if error.number == ENOENT { return nil }
            throw TokenFileError(.noDirectory, path: path, error)
        }
        try close(directory, path, to: 0o077, isKey: true)
        return directory
    }

    /// Removes other users' permissions to exchange or remove what is in a directory; refuses another user's directory.
    ///
    /// The directory of all keys may belong to root if others can't remove what is in it: each entry is used only if it belongs
    /// to this user.
    private static func close(
        _ directory: borrowing OpenFile, _ path: String, to others: mode_t, isKey: Bool
    ) throws(TokenFileError) {
        let status: stat, isOwn: Bool
        do {
            status = try directory.status()
            isOwn = status.st_uid == geteuid()
            if isOwn, status.st_mode & others != 0 { try directory.setMode(status.st_mode & 0o7777 & ~others) }
        } catch { throw TokenFileError(.unprotected, path: path, error) }
        let isRoots = status.st_uid == 0 && (status.st_mode & 0o022 == 0 || status.st_mode & mode_t(S_ISVTX) != 0)
        guard isOwn || !isKey && isRoots else { throw TokenFileError(ownedBy: status.st_uid, path: path) }
    }
}

extension BlockingCalls {
    /// Calls `body` with the names of `KeyFolder.names(in:having:_:)`, on a thread that only this call uses.
    package static func names(
        in directory: String, having file: String, _ body: @escaping @Sendable (String) -> Void
    ) async throws {
        try await BlockingCalls("AccessTokensFiles.names").perform { try KeyFolder.names(in: directory, having: file, body) }
    }

    /// Returns the same names, all at once.
    package static func names(in directory: String, having file: String) async throws -> [String] {
        try await BlockingCalls("AccessTokensFiles.names").perform {
            var names: [String] = []
            try KeyFolder.names(in: directory, having: file) { names.append($0) }
            return names
        }
    }
}
