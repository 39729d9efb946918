import AccessTokens
import AccessTokensFiles
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
/// when you have inspected it. The store never replaces a file that it hasn't written.
///
/// **Names that begin with a dot.** `.NAME.DIGITS.tmp` is a swap that is under way, or was when its process was killed. If the
/// file is removed, that swap fails, and the service tries again. `.NAME.HOLDER.alive` shows that a process is running. If the
/// file is removed during a load, others take that process for dead; before its next load the process makes another file.
///
/// **Death.** Each store has its own file, which stays locked as long as its process lives. So the others know when a process
/// that has marked the record has died, for whatever reason. A child made with `fork` that doesn't call `exec` keeps the lock
/// alive. The others also know how long ago the process marked the record, on a clock that all processes of a machine share and
/// that stands still while the machine sleeps. So a program that begins later waits only for the rest of the time.
///
/// **Who can read it.** All files have the mode `0600`. The contents are not encrypted unless `TokenSharing.seal` does so.
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

    /// The name of this store's holder file, which is made and locked on first use, or if it was removed; `nil` if that fails.
    public var holder: String? {
        get async {
            // Runs on the queue, one call after another, so that there is only one file. The queue doesn't retain the store,
            // whose end ends the file.
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
