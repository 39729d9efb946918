public import AccessTokens
import Foundation

/// A token store in one file that only its owner can read and that a crash at any moment leaves intact.
///
/// A save writes a temporary file beside the token file, waits until the disk has it, renames it over the token file, and
/// waits for the directory. A reader, in whatever process, finds the earlier token or the new one, never a mixture.
///
/// **Concurrent calls.** Operations of one store run one after another in the order of the calls, on a queue of its own,
/// since a disk may take its time. Two stores at one path, in one process or several, never mix their tokens: the last
/// save wins. This is not a lock: two processes that refresh with the same one-time refresh token still both spend it.
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
        // A deleted working directory has no path: then the path stays relative, and every operation reports that.
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
    /// a loss of power may bring the earlier one back.
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
