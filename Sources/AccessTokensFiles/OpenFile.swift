#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A system call that failed.
package struct SystemFailure: Error {
    package let number: Int32

    /// The system's own words.
    var text: String { unsafe String(cString: strerror(number)) }
}

/// An open file or directory, closed when its value ends; calls that a signal interrupted are made again.
package struct OpenFile: ~Copyable {
    package let descriptor: Int32

    deinit {
        // Nothing to learn from it: what matters was synchronised before.
        _ = close(descriptor)
    }

    /// Opens a directory.
    package init(directory path: String) throws(SystemFailure) {
        descriptor = try systemCall { unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    }

    /// Opens a file of a directory: never through a symbolic link, and without waiting for the other end of a pipe.
    package init(_ name: String, in directory: borrowing OpenFile, _ flags: Int32 = O_RDONLY) throws(SystemFailure) {
        let parent = directory.descriptor
        descriptor = try systemCall {
            unsafe openat(parent, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        }
    }

    /// The file's kind, owner and mode.
    func status() throws(SystemFailure) -> stat {
        var status = stat()
        _ = try systemCall { unsafe fstat(descriptor, &status) }
        return status
    }

    /// Lets the owner read and write, and permits nothing else, whatever the umask.
    package func protect() throws(SystemFailure) {
        _ = try systemCall { fchmod(descriptor, 0o600) }
    }

    /// Locks the file, unless it is locked already; the lock ends with this value, or with the process.
    package func lock() throws(SystemFailure) -> Bool {
        do {
            _ = try systemCall { flock(descriptor, LOCK_EX | LOCK_NB) }
            return true
        } catch {
            guard error.number == EWOULDBLOCK else { throw error }
            return false
        }
    }

    /// Whether another value has the file locked, here or in another process; several may ask at once and don't disturb each other.
    package func isLockedElsewhere() throws(SystemFailure) -> Bool {
        do {
            _ = try systemCall { flock(descriptor, LOCK_SH | LOCK_NB) }
            return false
        } catch {
            guard error.number == EWOULDBLOCK else { throw error }
            return true
        }
    }

    /// Whether the name still leads to this file.
    package func isStillThere(as name: String, in directory: borrowing OpenFile) throws(SystemFailure) -> Bool {
        let own = try status(), parent = directory.descriptor
        var other = stat()
        do {
            _ = try systemCall { unsafe fstatat(parent, name, &other, AT_SYMLINK_NOFOLLOW) }
        } catch {
            if error.number == ENOENT { return false }
            throw error
        }
        return own.st_ino == other.st_ino && own.st_dev == other.st_dev
    }

    /// Reads from the beginning until the end or the limit.
    func read(upTo limit: Int) throws(SystemFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4096)
        while bytes.count < limit {
            let room = min(part.count, limit - bytes.count)
            let count = try systemCall { unsafe pread(descriptor, &part, room, off_t(bytes.count)) }
            if count == 0 { break }
            bytes += part.prefix(count)
        }
        return bytes
    }

    /// Writes all of it.
    package func write(_ bytes: [UInt8]) throws(SystemFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = try systemCall {
                unsafe rest.withUnsafeBytes { unsafe pwrite(descriptor, $0.baseAddress, $0.count, off_t(rest.startIndex)) }
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Waits until the disk has everything.
    package func synchronize() throws(SystemFailure) {
        #if canImport(Darwin)
        // There `fsync` leaves the data in the drive's own memory; not every volume knows the stronger call.
        if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        do {
            _ = try systemCall { fsync(descriptor) }
        } catch {
            // Some network volumes cannot synchronise a directory, and have nothing to.
            guard error.number == EINVAL || error.number == ENOTSUP else { throw error }
        }
    }
}

/// Makes a system call until no signal interrupts it.
package func systemCall<Number: SignedInteger>(_ call: () -> Number) throws(SystemFailure) -> Number {
    while true {
        let result = call()
        if result >= 0 { return result }
        let number = errno
        if number != EINTR { throw SystemFailure(number: number) }
    }
}
