public import AccessTokens
import Foundation
import TokenServiceConcurrency

/// Why an operation of a file store, shared or not, failed.
///
/// It names the file and the system's message, and shows nothing of the file's contents. With a damaged file a new sign-in helps,
/// with one of another program, of another service or of a later version a change of the program; any other obstacle may pass.
public struct TokenFileError: TokenLoadFailure, Sendable {
    /// The kind of error, as a value to compare.
    package enum Code: String, Sendable {
        /// The path can't be a file's: it is empty, has a NUL, ends in a slash, in dots or in too long a name, or is relative to
        /// a deleted directory.
        case invalidPath
        /// The directory doesn't exist, or can't be opened.
        case noDirectory
        /// The system doesn't allow the file to be read.
        case unreadable
        /// Something else is at the path: another program's file, a directory, a symbolic link.
        case notATokenFile
        /// The file or directory belongs to another user, who may have put it there; the process's effective user counts.
        case foreignOwner
        /// The file begins like a token file but isn't a whole one: it is truncated, empty or altered.
        case damaged
        /// A key's directory has another key's name in it: it was moved or copied there.
        case otherKey
        /// The file was written by a later version of this package.
        case unsupportedVersion
        /// Others have permissions on the file or directory, and these can't be removed.
        case unprotected
        /// The token could not be written: no permission, no space, a failing disk, or a token that no file can hold.
        case writeFailed
        /// The file could not be removed, or the disk did not confirm it.
        case removeFailed
        /// Another store has saved a refresh token in the file since this one read or wrote it; it was replaced.
        case changedElsewhere
        /// Another process kept a shared file or a key's directory locked for 4 s: it was stopped in the middle of a change, or
        /// the disk is very slow.
        case locked
    }

    /// The kind of error.
    package let code: Code

    /// The path of the token file.
    package let path: String

    /// The system's error number, such as `ENOSPC`; `nil` if no system call failed.
    package let systemError: Int32?

    /// The exact problem, in our own words or the system's.
    let detail: String

    package init(_ code: Code, path: String, detail: String) {
        self.code = code
        self.path = path
        self.systemError = nil
        self.detail = detail
    }

    init(ownedBy user: uid_t, path: String) {
        self.init(
            .foreignOwner, path: path, detail: "it belongs to user \(user), and the program runs as user \(geteuid())")
    }

    package init(lockedFor patience: Duration, path: String) {
        self.init(.locked, path: path, detail: "another process has had it locked for \(patience.components.seconds) s")
    }

    package init(_ code: Code, path: String, _ failure: SystemFailure) {
        self.code = code
        self.path = path
        self.systemError = failure.number
        self.detail = failure.text
    }
}

extension TokenFileError {
    /// How to recover: by a sign-in, which replaces a damaged file, by a change of the program, or by waiting.
    public var remedy: TokenServiceError.Remedy {
        switch code {
        case .damaged: .signIn
        case .notATokenFile, .unsupportedVersion, .changedElsewhere: .programChange
        default: .retry
        }
    }
}

extension TokenFileError: StoreFailure {
    /// Whether the token was saved in spite of the error.
    package var tookEffect: Bool { code == .changedElsewhere }
}

extension TokenFileError: Redacted, DescribedError {
    /// The problem and its remedy, without any of the file's contents.
    package var text: String {
        // Quoted and escaped: a path may contain line breaks.
        let name = String(reflecting: path)
        return switch code {
        case .invalidPath:
            "\(name) can't be the path of a token file: \(detail). Give the path of a file in an existing directory."
        case .noDirectory where systemError == ENOENT:
            "The directory of the token file \(name) cannot be opened: \(detail). Create or mount it."
        case .noDirectory:
            "The directory of the token file \(name) cannot be opened: \(detail). Check what is there, and its permissions."
        case .unreadable: "The token file \(name) cannot be read: \(detail). Check its owner, its permissions and the disk."
        case .notATokenFile:
            "The file at \(name) is not a token file: \(detail). It was left unchanged; move it away or choose another path."
        case .foreignOwner:
            "The file or directory \(name) belongs to another user: \(detail). It was left unchanged; remove it, change its "
                + "owner, or use a directory of your own."
        case .otherKey:
            "The directory \(name) belongs to another key: \(detail). It was left unchanged; move it back to its own "
                + "place, or remove it and sign in again."
        case .damaged:
            "The token file \(name) is damaged: \(detail). Reading leaves it as it is, and a sign-out removes it. Restore "
                + "it from a backup, or sign in again, which keeps its bytes in \(String(reflecting: aside))."
        case .unsupportedVersion:
            "The token file \(name) has a newer version than this program can read: \(detail). Loading and saving leave it as "
                + "it is. Update the program, or sign out, which removes it, and sign in again."
        case .unprotected:
            "The token file \(name) is open to other users, and chmod failed: \(detail). Set your user as its owner, "
                + "and its mode to 0600 (a directory: 0700)."
        case .locked:
            "The token file \(name) could not be changed: \(detail). Look for a process that was stopped, and try again."
        case .changedElsewhere:
            "The token was saved, but \(name) has another user: \(detail). Two services must not spend one refresh token: use one "
                + "service, or share the grant in a SharedFileTokenStore. A backup that was just restored does no harm."
        case .removeFailed: "The token file \(name) was not removed: \(detail). Remove it by hand."
        case .writeFailed:
            "The token was not written to \(name): \(detail). Check the directory's permissions and the space on the disk."
        }
    }

    /// Where the bytes of a damaged file are kept.
    private var aside: String { ".\(path.split(separator: "/").last ?? "").damaged" }
}
