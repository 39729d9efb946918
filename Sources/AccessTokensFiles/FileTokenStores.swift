public import AccessTokens

/// A file store for each key, all of them in one directory, for `TokenServices`.
///
/// ```swift
/// let stores = FileTokenStores<String>(directory: "/var/lib/reports/tokens")
/// ```
///
/// Each key has a directory of its own in there. Its name is the SHA-256 of the key's name, so it shows neither a name nor a secret,
/// and no name leads out of the directory. The key's name and its token are in files of that directory, `key` and `token`; each is
/// written as by ``FileTokenStore``.
///
/// **Other processes.** A save and a removal lock the key's directory while they run, so that they come one after the other, also in
/// two processes, and leave nothing that a sign-out of all keys can't find. A read needs no lock. Two processes that refresh one
/// rotating refresh token still both spend it. Keep the directory on a local disk.
///
/// **A user is signed out only if there is nothing.** Whatever else keeps an operation from looking is an error: permissions, a
/// directory of all keys that is not mounted, a symbolic link in the place of a key's directory. So is a key's directory with
/// another key's name in it, which was moved.
///
/// **Other users.** Each operation takes away their permissions on the key's directory, and the permission to write to that of all
/// keys. A directory that belongs to another user is an error. Only the directory of all keys may be root's, if others can't remove
/// what is in it.
///
/// All methods may be called concurrently, from any thread.
public struct FileTokenStores<Key: Hashable & Sendable>: TokenStores {
    let directory: String
    private let name: @Sendable (Key) -> String
    private let key: @Sendable (String) -> Key?

    /// Creates the stores and touches nothing yet.
    ///
    /// - Parameters:
    ///   - directory: A directory for nothing else. A relative path starts at the working directory of this moment.
    ///   - name: The text by which a key is known to the next run of the program. No other key has it, or one that Swift calls equal.
    ///   - key: The key of such a text; `nil`: it has none any more, and its token is left alone.
    public init(
        directory: String, name: @escaping @Sendable (Key) -> String, key: @escaping @Sendable (_ name: String) -> Key?
    ) {
        self.directory = FileTokenStore(path: directory).path
        self.name = name
        self.key = key
    }

    /// Returns the store of a key, and touches nothing yet.
    ///
    /// - Parameter key: The key.
    public func store(for key: Key) -> any TokenStore {
        KeyFileStore(KeyFolder(of: name(key), in: directory))
    }

    /// Returns the keys that have a token.
    ///
    /// - Throws: A ``TokenFileError`` if the directory, or one of the keys' names, can't be read.
    @concurrent public func storedKeys() async throws -> [Key] {
        try await BlockingCalls.names(in: directory, having: KeyFileStore.file).compactMap(key)
    }

    /// Tells the keys that have a token, each as soon as it is found.
    ///
    /// - Parameter body: Called with each key, on a thread of this call's own.
    /// - Throws: A ``TokenFileError`` if the directory can't be read; or at the end, if one of the keys' names can't be.
    @concurrent public func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws {
        try await BlockingCalls.names(in: directory, having: KeyFileStore.file) { if let key = key($0) { body(key) } }
    }
}

extension FileTokenStores where Key: LosslessStringConvertible {
    /// Creates the stores of keys that are texts, or can be written as one; touches nothing yet.
    ///
    /// - Parameter directory: A directory for nothing else. A relative path starts at the working directory of this moment.
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
            // Locked until here.
            _ = consume directory
        }
    }

    @concurrent func remove() async throws {
        try await calls.perform { [folder, token] in try folder.remove(token) }
    }
}
