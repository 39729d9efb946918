import AccessTokens
import AccessTokensFiles
import AccessTokensKeys
public import AccessTokensSharing
public import Foundation
import TokenServiceConcurrency

/// A shared token store in one file, for the processes of one machine: one of them loads, and the others adopt its token.
///
/// ```swift
/// let tokens = TokenService(sharedStore: SharedFileTokenStore(path: path), loader: loader)
/// ```
///
/// A swap locks the file while it reads, compares and renames another file over it, and waits until the disk has the new record.
/// No lock is held while a request is under way. A reader needs no lock, and finds either record whole. Keep the file on a local
/// disk that has hard links: locks on network volumes are unreliable.
///
/// **A damaged record**, truncated, altered or empty, is an error with the file's path, and is left as it is. A sign-in or a
/// sign-out replaces it, and keeps its bytes as `.NAME.damaged` beside `NAME`. They may hold a refresh token, so remove that file
/// when you have inspected it. The store never replaces another user's file, or one that doesn't begin like a record.
///
/// **Names that begin with a dot.** `.NAME.DIGITS.tmp` is a swap that is under way, or was when its process was killed. If the
/// file is removed, that swap fails, and the service tries again. `.NAME.HOLDER.alive` shows that a process is running. If the
/// file is removed during a load, others consider that process dead, and present the refresh token that it may be presenting: keep
/// cleaners away from the directory. Before its next load the process creates another file.
///
/// **Dead processes.** Each store has its own file, which stays locked as long as its process lives. So other processes can tell
/// when a process that has marked the record has died, for whatever reason. A child made with `fork` that doesn't call `exec`
/// keeps the lock alive. Other processes can also tell how long ago the process marked the record, by a clock that all processes
/// of a machine share and that stops while the machine sleeps. So a program that starts later waits only for the rest of the
/// time.
///
/// **Who can read it.** All files have the mode `0600`. The contents are not encrypted unless `TokenSharing(seal:)` does so.
///
/// Every error is a `TokenFileError`, of the module `AccessTokensFiles`. All methods may be called from anywhere at any time; the
/// calls of one store run one after another.
public final class SharedFileTokenStore: SharedTokenStore {
    private let file: SharedFile
    private let calls = BlockingCalls("AccessTokensSharedFiles.SharedFileTokenStore")
    private let ownHolder = Lock<HolderFile?>(nil)

    /// Creates a store without touching the file.
    ///
    /// - Parameter path: Where the record is kept; see `FileTokenStore.init(path:)`. The directory must exist.
    public init(path: String) {
        file = SharedFile(TokenFile(path: FileTokenStore(path: path).path))
    }

    /// The absolute path of the file.
    package var path: String { file.file.path }

    /// Returns the current record.
    ///
    /// - Returns: `nil` only if the directory exists and the file doesn't.
    @concurrent public func load() async throws -> SharedRecord? {
        try await calls.perform { [file] in try file.load() }
    }

    /// Replaces the record if its revision is still the given one, and waits until the disk has the new one.
    ///
    /// - Parameters:
    ///   - bytes: The new record; 1 MiB at most.
    ///   - revision: The revision of the record that it replaces; `nil` if there is none.
    @concurrent public func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        try await calls.perform { [file] in try file.swap(Array(bytes), ifAt: revision) }
    }

    /// The name of this store's holder file, which is created and locked on first use, or after it was removed; `nil` if that
    /// fails.
    public var holder: String? {
        get async {
            // Runs on the queue, one call after another, so that there is only one file. The queue doesn't retain the store,
            // so releasing the store removes the file.
            try? await calls.perform { [weak self, file] in
                if let own = self?.ownHolder.withLock({ $0 }), try own.isStillThere() { return own.name }
                let own = try HolderFile(beside: file.file)
                // Release the previous holder, whose file was removed, outside the lock.
                _ = self?.ownHolder.withLock { held in
                    defer { held = own }
                    return held
                }
                return own.name
            }
        }
    }

    /// Returns `false` if the holder's file can be locked or is gone: its process has ended, or has released its store.
    ///
    /// - Parameter holder: The ``holder`` of that process.
    @concurrent public func isRunning(_ holder: String) async -> Bool? {
        try? await calls.perform { [file] in try HolderFile.isLocked(holder, beside: file.file) }
    }
}

// MARK: A record for each key

/// A shared file store for each key, all of them in one directory, for `TokenServices` in the processes of one machine.
///
/// ```swift
/// let stores = SharedFileTokenStores<String>(directory: "/var/lib/reports/grants")
/// ```
///
/// Each key has its own directory in there, named, protected and checked as by `FileTokenStores`; its record, the file
/// `grant`, is written as by ``SharedFileTokenStore``. A record stays after a sign-out, so that no late save brings a token back.
/// One more file shows that this process is running: however many keys there are, the process keeps only that one open.
///
/// All methods may be called concurrently, from any thread. The directory must exist, on a local disk.
public struct SharedFileTokenStores<Key: Hashable & Sendable>: SharedTokenStores {
    private let directory: String
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
private struct KeySharedFileStore: SharedTokenStore {
    static let file = "grant"
    private let folder: KeyFolder
    private let record: SharedFile
    /// A store without a record, used only for its holder file.
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
            // Keep the directory locked until here.
            _ = consume directory
            return outcome
        }
    }

    var holder: String? {
        get async { await process.holder }
    }

    @concurrent func isRunning(_ holder: String) async -> Bool? { await process.isRunning(holder) }
}

// MARK: The file of both

/// The file of a shared record, and its operations; the calls block.
///
/// Its first line names the format, the revision, and the time of writing:
/// `tokenservice.shared 1 REVISION BOOT UPTIME WALL sum=SUM`. The record follows; the sum is over its bytes.
///
/// A swap locks the record's own file, checks that the file still has its name, and renames another file over it. Suppose process
/// A waits for the lock while process B swaps: A then finds that its file was replaced, and begins again with B's. A separate
/// lock file could be removed by a clean-up, and two processes would hold the lock. The first record is put in place with a link,
/// which fails if there is a record.
private struct SharedFile: Sendable {
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
            // Another swap is under way or has just finished.
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
        let time = BootTime(words.dropFirst()), now = BootTime.now
        var found = SharedRecord(
            Data(record), revision: .init(words.first.map { String($0) } ?? ""),
            age: time.flatMap { time in now.map { time.age(at: $0) } })
        found.isAgeSteady = time.map { $0.boot == now?.boot } ?? false
        return found
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

    /// Increments the number and adds random digits: no revision may repeat, even after the file was removed by hand.
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
