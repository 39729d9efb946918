public import AccessTokens
import Foundation

/// A token store in one file that only its owner can read and that a crash at any moment leaves intact.
///
/// A save writes a temporary file beside the token file, waits until the disk has it, renames it over the token file, and
/// waits for the directory. A reader, in whatever process, finds the earlier token or the new one, never a mixture.
///
/// **Concurrent calls.** Operations of one store run one after another in the order of the calls, on its own queue,
/// since a disk may take its time. Two stores at one path, in one process or several, never mix their tokens: the last
/// save wins. This is not a lock: two processes that refresh with the same one-time refresh token still both spend it. If both
/// then save, the later save's error names `SharedFileTokenStore`, which such processes need, and so does the service's event.
///
/// **Other files stay.** All three operations throw for another user's file, which that user may have put there, and for another
/// program's. ``load()`` and ``save(_:)`` also throw for a token file of a later version. ``save(_:)`` reads the file that it is
/// about to replace, a few hundred bytes in addition to two waits for the disk. ``remove()`` needs only the first bytes: it
/// removes a newer token file, which may hold a refresh token. Between that check and the change, another program can still put a
/// file of its own there.
///
/// **A damaged file**, truncated or empty, is an error of ``load()``, which changes nothing. ``save(_:)`` replaces it, so that
/// the user can sign in again, and keeps its bytes as `.NAME.damaged` beside `NAME`; if that happens twice, it keeps the later
/// ones. They may hold a refresh token, so ``remove()`` removes both files.
///
/// **Names that begin with a dot.** `.NAME.DIGITS.tmp` is a save that is under way, or was when its process was killed. If the
/// file is removed, that save fails and the earlier token stays.
///
/// **One name.** Another name of the same file (a hard link) acts as a copy: it keeps its token when ``save(_:)`` replaces or
/// ``remove()`` removes the file. A copied token is only gone when the server revokes it.
///
/// **Who can read it.** The file's mode is `0600` whatever the umask. If others have permissions on the file, in a copy or a
/// backup, ``load()`` removes them. The contents are not encrypted.
///
/// Every error is a ``TokenFileError``. The directory must exist, so that an unmounted disk doesn't look like a signed-out user.
/// Keep few other files in it: each save searches it for what a killed process left.
public final class FileTokenStore: TokenStore {
    private let file: TokenFile
    private let calls = BlockingCalls("AccessTokensFiles.FileTokenStore")

    /// Creates a store without touching the file.
    ///
    /// - Parameter path: Where the token is kept. A relative path is resolved now, against the working directory; if that has
    ///   been deleted, every operation throws. `~` is a name like any other. The directory must exist, and the last component
    ///   must not be a symbolic link.
    public init(path: String) {
        let start = FileManager.default.currentDirectoryPath
        // A deleted working directory has no path: then the path stays relative, and every operation throws.
        let isKept = path.isEmpty || path.utf8.first == UInt8(ascii: "/") || start.utf8.first != UInt8(ascii: "/")
        file = TokenFile(path: isKept ? path : start + "/" + path)
    }

    /// The absolute path of the token file, or the path as given if there was no working directory to resolve it.
    package var path: String { file.path }

    /// Returns the token that was saved last; first removes other users' permissions on the file, if there are any.
    ///
    /// - Returns: `nil` only if the directory exists and the file doesn't.
    @concurrent public func load() async throws -> StoredToken? {
        try await calls.perform { [file] in try file.load() }
    }

    /// Replaces the token file as a whole and waits until the disk has it; also removes what killed processes left.
    ///
    /// After an error the earlier token is still there, unless waiting for the directory failed: then the new token is there, and
    /// a loss of power may bring the earlier one back. If another store has saved a refresh token since this one read the file, the
    /// new token is saved and the error says so, once.
    ///
    /// - Parameter token: The token to keep.
    @concurrent public func save(_ token: StoredToken) async throws {
        try await calls.perform { [file] in try file.save(token) }
    }

    /// Removes the token file and what killed processes left; not an error if there is none.
    ///
    /// A file that does not begin like a token file stays, and is an error. An empty one is removed: nothing is lost. A leftover
    /// that can't be removed is not an error once the token file is gone; later operations try again.
    @concurrent public func remove() async throws {
        try await calls.perform { [file] in try file.remove() }
    }
}

// MARK: A file for each key

/// A file store for each key, all of them in one directory, for `TokenServices`.
///
/// ```swift
/// let stores = FileTokenStores<String>(directory: "/var/lib/reports/tokens")
/// ```
///
/// Each key has its own directory in there. The directory's name is the SHA-256 of the key's name, so it shows neither a
/// name nor a secret, and no name leads out of the directory. The files `key` and `token` hold the key's name and its token; both
/// are written as ``FileTokenStore`` writes.
///
/// **Other processes.** Saves and removals lock the key's directory, so that they run one after another, even in two processes,
/// and leave nothing that a sign-out of all keys can't find. A read needs no lock. Two processes that refresh with the same
/// rotating refresh token still both spend it. Keep the directory on a local disk.
///
/// **A user counts as signed out only if nothing is there.** Anything else that prevents a read is an error: permissions, an
/// unmounted directory, a symbolic link in place of a key's directory. A key's directory that contains another key's name,
/// because it was moved there, is an error, too.
///
/// **Other users.** Each operation removes other users' permissions on the key's directory, and their permission to write to the
/// directory of all keys. A directory that belongs to another user is an error. Only the directory of all keys may belong to
/// root, if others can't remove what is in it.
///
/// All methods may be called concurrently, from any thread.
public struct FileTokenStores<Key: Hashable & Sendable>: TokenStores {
    private let directory: String
    private let name: @Sendable (Key) -> String
    private let key: @Sendable (String) -> Key?

    /// Creates the stores without touching the disk.
    ///
    /// - Parameters:
    ///   - directory: An existing directory that is used for nothing else. A relative path is resolved now, against the working
    ///     directory.
    ///   - name: The text that identifies a key in the next run of the program. No two keys may have texts that Swift calls
    ///     equal.
    ///   - key: The key for such a text; `nil` if there is none any more: then its token is left alone.
    public init(
        directory: String, name: @escaping @Sendable (Key) -> String, key: @escaping @Sendable (_ name: String) -> Key?
    ) {
        self.directory = FileTokenStore(path: directory).path
        self.name = name
        self.key = key
    }

    /// Returns the store of a key without touching the disk.
    ///
    /// - Parameter key: The key.
    public func store(for key: Key) -> any TokenStore {
        KeyFileStore(KeyFolder(of: name(key), in: directory))
    }

    /// Calls `body` with each key that has a token, as soon as the key is found.
    ///
    /// A file with a token that a save or a removal left when its process was killed counts, too.
    ///
    /// - Parameter body: Called with each key, on a thread that only this call uses.
    /// - Throws: A ``TokenFileError`` if the directory can't be read, or at the end if one of the keys' names can't be read.
    @concurrent public func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws {
        try await BlockingCalls.names(in: directory, having: KeyFileStore.file) { if let key = key($0) { body(key) } }
    }
}

extension FileTokenStores where Key: LosslessStringConvertible {
    /// Creates the stores for keys that are strings or can be written as one, without touching the disk.
    ///
    /// - Parameter directory: An existing directory that is used for nothing else. A relative path is resolved now, against the
    ///   working directory.
    public init(directory: String) {
        self.init(directory: directory, name: { String($0) }, key: { Key($0) })
    }
}

/// The token of one key, in its directory.
private struct KeyFileStore: TokenStore {
    static let file = "token"
    private let folder: KeyFolder
    private let token: TokenFile
    private let calls = BlockingCalls("AccessTokensFiles.FileTokenStores")

    init(_ folder: KeyFolder) {
        self.folder = folder
        token = folder.file(Self.file)
    }

    @concurrent func load() async throws -> StoredToken? {
        try await calls.perform { [folder, token] in
            guard let directory = try folder.open() else { return nil }
            return try token.load(in: directory)
        }
    }

    @concurrent func save(_ stored: StoredToken) async throws {
        try await calls.perform { [folder, token] in
            let directory = try folder.prepare()
            try token.save(stored, in: directory)
            // Keep the directory locked until here.
            _ = consume directory
        }
    }

    @concurrent func remove() async throws {
        try await calls.perform { [folder, token] in try folder.remove(token) }
    }
}
