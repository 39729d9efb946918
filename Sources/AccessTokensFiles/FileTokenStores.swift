public import AccessTokens

/// A file store for each key, all of them in one directory, for `TokenServices`.
///
/// ```swift
/// let stores = FileTokenStores<String>(directory: "/var/lib/reports/tokens")
/// ```
///
/// Each key has a directory of its own in there. The directory's name is the SHA-256 of the key's name, so it shows neither a
/// name nor a secret, and no name leads out of the directory. The files `key` and `token` hold the key's name and its token; both
/// are written as ``FileTokenStore`` writes.
///
/// **Other processes.** Saves and removals lock the key's directory, so that they run one after another, even in two processes,
/// and leave nothing that a sign-out of all keys can't find. A read needs no lock. Two processes that refresh with the same
/// rotating refresh token still both spend it. Keep the directory on a local disk.
///
/// **A user counts as signed out only if nothing is there.** Anything else that prevents a read is an error: permissions, an
/// unmounted directory, a symbolic link in place of a key's directory. A key's directory with another key's name in it, which was
/// moved there, is an error, too.
///
/// **Other users.** Each operation removes other users' permissions on the key's directory, and their permission to write to the
/// directory of all keys. A directory that belongs to another user is an error. Only the directory of all keys may belong to
/// root, if others can't remove what is in it.
///
/// All methods may be called concurrently, from any thread.
public struct FileTokenStores<Key: Hashable & Sendable>: TokenStores {
    let directory: String
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
struct KeyFileStore: TokenStore {
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
            // The directory is locked until here.
            _ = consume directory
        }
    }

    @concurrent func remove() async throws {
        try await calls.perform { [folder, token] in try folder.remove(token) }
    }
}
