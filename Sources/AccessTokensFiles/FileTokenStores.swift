public import AccessTokens

/// A file store for each key, all of them in one directory, for `TokenServices`.
///
/// ```swift
/// let stores = FileTokenStores<String>(directory: "/var/lib/reports/tokens")
/// ```
///
/// Each key has a directory of its own in there, which only its owner can enter. Its name is the SHA-256 of the key's name, so it
/// shows neither a name nor a secret, and no name leads out of the directory. The key's name and its token are in files of that
/// directory; each is written as by ``FileTokenStore``.
///
/// All methods may be called concurrently, from any thread. The directory must exist, so that a disk that is not mounted doesn't
/// look like users who are signed out.
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
        try await KeyFolder.names(in: directory, having: KeyFileStore.file).compactMap(key)
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
    private let token: FileTokenStore

    init(_ folder: KeyFolder) {
        self.folder = folder
        token = FileTokenStore(path: folder.path + "/" + Self.file)
    }

    @concurrent func load() async throws -> StoredToken? {
        try await folder.isThere() ? token.load() : nil
    }

    @concurrent func save(_ stored: StoredToken) async throws {
        try await folder.prepare()
        try await token.save(stored)
    }

    @concurrent func remove() async throws {
        guard try folder.isThere() else { return }
        try await token.remove()
        try await folder.remove()
    }
}
