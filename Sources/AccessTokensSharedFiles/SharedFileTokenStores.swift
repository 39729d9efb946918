import AccessTokens
import AccessTokensFiles
import AccessTokensKeys
public import AccessTokensSharing
import Foundation

/// A shared file store for each key, all of them in one directory, for `TokenServices` in the processes of one machine.
///
/// ```swift
/// let stores = SharedFileTokenStores<String>(directory: "/var/lib/reports/grants")
/// ```
///
/// Each key has a directory of its own in there, named, protected and checked as by `FileTokenStores`; its record, the file
/// `grant`, is written as by ``SharedFileTokenStore``. A record stays after a sign-out, so that no late save brings a token back.
/// One more file shows that this process is running: however many keys there are, the process keeps only that one open.
///
/// All methods may be called concurrently, from any thread. The directory must exist, on a local disk.
public struct SharedFileTokenStores<Key: Hashable & Sendable>: SharedTokenStores {
    let directory: String
    private let process: SharedFileTokenStore
    private let name: @Sendable (Key) -> String
    private let key: @Sendable (String) -> Key?

    /// Creates the stores without touching the disk; all copies of one value count as one process.
    ///
    /// - Parameters:
    ///   - directory: An existing directory that is used for nothing else. A relative path is resolved now, against the working
    ///     directory.
    ///   - name: The text that identifies a key in all processes. No two keys may have texts that Swift calls equal.
    ///   - key: The key for such a text; `nil` if there is none any more: then its record is left alone.
    public init(
        directory: String, name: @escaping @Sendable (Key) -> String, key: @escaping @Sendable (_ name: String) -> Key?
    ) {
        self.directory = FileTokenStore(path: directory).path
        process = SharedFileTokenStore(path: self.directory + "/process")
        self.name = name
        self.key = key
    }

    /// Returns the store of a key without touching the disk.
    ///
    /// - Parameter key: The key.
    public func store(for key: Key) -> any SharedTokenStore {
        KeySharedFileStore(KeyFolder(of: name(key), in: directory), process: process)
    }

    /// Calls `body` with each key that has a record, as soon as the key is found, also if it is signed out.
    ///
    /// - Parameter body: Called with each key, on a thread that only this call uses.
    /// - Throws: A `TokenFileError` if the directory can't be read, or at the end if one of the keys' names can't be read.
    @concurrent public func forEachStoredKey(_ body: @escaping @Sendable (Key) -> Void) async throws {
        try await BlockingCalls.names(in: directory, having: KeySharedFileStore.file) { if let key = key($0) { body(key) } }
    }
}

extension SharedFileTokenStores where Key: LosslessStringConvertible {
    /// Creates the stores for keys that are strings or can be written as one, without touching the disk.
    ///
    /// - Parameter directory: An existing directory that is used for nothing else. A relative path is resolved now, against the
    ///   working directory.
    public init(directory: String) {
        self.init(directory: directory, name: { String($0) }, key: { Key($0) })
    }
}

/// The record of one key, in its directory; all keys of a process share one holder.
struct KeySharedFileStore: SharedTokenStore {
    static let file = "grant"
    private let folder: KeyFolder
    private let record: SharedFile
    /// Has no record: only its holder is used.
    private let process: SharedFileTokenStore
    private let calls = BlockingCalls("AccessTokensSharedFiles.SharedFileTokenStores")

    init(_ folder: KeyFolder, process: SharedFileTokenStore) {
        self.folder = folder
        self.process = process
        record = SharedFile(folder.file(Self.file))
    }

    @concurrent func load() async throws -> SharedRecord? {
        try await calls.perform { [folder, record] in
            guard let directory = try folder.open() else { return nil }
            return try record.load(in: directory)
        }
    }

    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        try await calls.perform { [folder, record] in
            let directory = try folder.prepare()
            let outcome = try record.swap(Array(bytes), ifAt: revision, in: directory)
            // The directory is locked until here.
            _ = consume directory
            return outcome
        }
    }

    var holder: String? {
        get async { await process.holder }
    }

    @concurrent func isRunning(_ holder: String) async -> Bool? { await process.isRunning(holder) }
}
