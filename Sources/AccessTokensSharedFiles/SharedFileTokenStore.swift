import AccessTokens
import AccessTokensFiles
public import AccessTokensSharing
public import Foundation
import TokenServiceConcurrency

/// A shared token store in one file, for the processes of one machine: one of them loads, and the others adopt what it brings.
///
/// ```swift
/// let tokens = TokenService(sharedStore: SharedFileTokenStore(path: path), loader: loader)
/// ```
///
/// A swap locks the file for the time in which it reads, compares and renames another over it, and waits until the disk has the new
/// record; no lock is held while a request is under way. A reader needs no lock, and finds one whole record or another. Keep the file on
/// a local disk that has hard links: locks on network volumes are not to be relied upon.
///
/// **A damaged record**, cut off, altered or empty, is an error with the file's path, and is left as it is. A sign-in or a sign-out
/// replaces it, and keeps its bytes as `.NAME.damaged` beside `NAME`: they may hold a refresh token, so remove that file when you have
/// looked at it. What this store has not written is never replaced.
///
/// **Names that begin with a dot.** `.NAME.DIGITS.tmp` is a swap that is under way, or was when its process was killed. If it is removed,
/// that swap fails, and the service tries again. `.NAME.HOLDER.alive` says that a process is running. If it is removed while a load is
/// under way, others take that process for dead; before its next load it makes another.
///
/// **Death.** Each store has a file of its own that stays locked as long as its process lives. So the others know when a process
/// that has marked the record has died, however it died. A child made with `fork` that doesn't call `exec` keeps the lock alive.
/// They also know how long ago it marked the record, on a clock that all processes of a machine share and that stands still while
/// the machine sleeps. So a program that begins later waits only for the rest of the time.
///
/// **Who can read it.** All files have the mode `0600`. The contents are not encrypted unless `TokenSharing.seal` does so.
///
/// Every error is a `TokenFileError`, of the module `AccessTokensFiles`. All methods may be called from anywhere at any time; those of
/// one store run one after another.
public final class SharedFileTokenStore: SharedTokenStore {
    private let file: SharedFile
    private let calls = BlockingCalls("AccessTokensSharedFiles.SharedFileTokenStore")
    private let ownHolder = Lock<HolderFile?>(nil)

    /// Creates a store and touches nothing yet.
    ///
    /// - Parameter path: Where the record is kept; see `FileTokenStore.init(path:)`. The directory must exist.
    public init(path: String) {
        file = SharedFile(TokenFile(path: FileTokenStore(path: path).path))
    }

    /// The complete path of the file.
    public var path: String { file.file.path }

    /// Returns the record as it is now.
    ///
    /// - Returns: `nil` only if the directory is there and the file is not.
    @concurrent public func load() async throws -> SharedRecord? {
        try await calls.perform { [file] in try file.load() }
    }

    /// Replaces the record if its revision is still the given one, and waits until the disk has the new one.
    ///
    /// - Parameters:
    ///   - bytes: The new record; 1 MiB at most.
    ///   - revision: The revision of the record that it replaces; `nil`: there is none.
    @concurrent public func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        try await calls.perform { [file] in try file.swap(Array(bytes), ifAt: revision) }
    }

    /// The name of this store's own file, which is made and locked at the first use, or if it was removed; `nil` if that can't be done.
    public var holder: String? {
        get async {
            // One after another on the queue, so that there is one file. It ends with the store: the queue doesn't keep that.
            try? await calls.perform { [weak self, file] in
                if let own = self?.ownHolder.withLock({ $0 }), try own.isStillThere() { return own.name }
                let own = try HolderFile(beside: file.file)
                // The one before, whose file was removed, ends outside the lock.
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
    /// - Parameter holder: What that process's ``holder`` says.
    @concurrent public func isRunning(_ holder: String) async -> Bool? {
        try? await calls.perform { [file] in try HolderFile.isLocked(holder, beside: file.file) }
    }
}
