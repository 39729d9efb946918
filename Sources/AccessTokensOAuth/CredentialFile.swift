import Dispatch
import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#else
import Glibc
#endif

extension Credential {
    /// A credential that another program keeps in a file and replaces before it expires.
    ///
    /// For example, a Kubernetes service account's token. The file needn't exist yet, and may be a symbolic link. Replace it by
    /// renaming another file, as Kubernetes does. A write in place is detected if it changes the file during a read. A file that
    /// is half-written at that time is read as a different credential, which the server refuses. A thread of Dispatch waits for
    /// the disk.
    ///
    /// A file is refused if it belongs to a user other than this one or root, if others can write to it, or if it changed while
    /// it was read; after a change, the next attempt can succeed. The error shows the path and nothing of the text.
    public static func file(path: String) -> Credential {
        let file = CredentialFile(path: path)
        return Credential(file.source) { try await file.read {} }
    }
}

/// One file with a credential.
struct CredentialFile: Sendable {
    let path: String

    /// The largest file that is read, in bytes (64 KiB).
    static let maximumSize = CredentialSource.maximumSize

    /// Reads the file; a test can change it during the read.
    func read(meanwhile: @escaping @Sendable () -> Void) async throws -> String {
        let answer = SingleResult<String>()
        DispatchQueue.global().async { [self] in
            answer.complete(with: Result { try readNow(meanwhile) })
        }
        return try await answer.value()
    }

    private func readNow(_ meanwhile: () -> Void) throws -> String {
        // The system would read the file whose path ends before that byte.
        guard !path.utf8.contains(0) else { throw failure("cannot be opened: its path has a zero byte") }
        // Opening a pipe must not wait for its other end.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw failure("cannot be opened: \(Self.systemText)") }
        defer { _ = close(descriptor) }
        let before = try status(of: descriptor)
        guard before.st_mode & S_IFMT == S_IFREG else { throw failure("is not a regular file") }
        guard before.st_uid == geteuid() || before.st_uid == 0 else { throw failure("belongs to user \(before.st_uid)") }
        guard before.st_mode & 0o022 == 0 else { throw failure("can be written by other users") }
        let bytes = try contents(of: descriptor, meanwhile)
        // Read twice, since file systems record modification times in steps: of several milliseconds up to Linux 6.12.
        let again = try contents(of: descriptor, meanwhile)
        let after = try status(of: descriptor)
        guard bytes.count <= Self.maximumSize else { throw source.tooLong }
        guard bytes == again, Version(before) == Version(after), bytes.count == Int(after.st_size) else {
            throw failure("changed while it was read; the next attempt reads it again")
        }
        return try source.credential(in: bytes)
    }

    /// Reads to the end, or just past the limit.
    private func contents(of descriptor: Int32, _ meanwhile: () -> Void) throws(OAuthError) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count <= Self.maximumSize {
            var part = [UInt8](repeating: 0, count: 4_096)
            let count = unsafe part.withUnsafeMutableBytes {
                unsafe pread(descriptor, $0.baseAddress, $0.count, off_t(bytes.count))
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure("cannot be read: \(Self.systemText)") }
            if count == 0 { break }
            bytes += part[..<count]
            meanwhile()
        }
        return bytes
    }

    private func status(of descriptor: Int32) throws(OAuthError) -> stat {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw failure("cannot be read: \(Self.systemText)") }
        return status
    }

    /// The attributes that a write changes.
    private struct Version: Equatable {
        let size: Int64
        let seconds, nanoseconds: Int

        init(_ status: stat) {
            #if canImport(Darwin)
            let time = status.st_mtimespec
            #else
            let time = status.st_mtim
            #endif
            (size, seconds, nanoseconds) = (Int64(status.st_size), Int(time.tv_sec), Int(time.tv_nsec))
        }
    }

    private static var systemText: String { unsafe String(cString: strerror(errno)) }

    var source: CredentialSource { CredentialSource("the file", path) }

    private func failure(_ problem: String) -> OAuthError { source.failure(problem) }
}
