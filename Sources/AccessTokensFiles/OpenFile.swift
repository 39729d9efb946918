import Dispatch
import Foundation
import TokenServiceConcurrency

/// A system call that failed.
package struct SystemFailure: Error {
    package let number: Int32

    /// The system's message for the error.
    var text: String { unsafe String(cString: strerror(number)) }
}

/// An open file or directory, closed when its value ends; interrupted calls are repeated.
package struct OpenFile: ~Copyable {
    package let descriptor: Int32

    deinit {
        // An error here doesn't matter: the data has already been synchronised.
        _ = close(descriptor)
    }

    /// Opens a directory.
    package init(directory path: String) throws(SystemFailure) {
        descriptor = try systemCall { unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    }

    /// Opens a directory inside a directory, but not through a symbolic link.
    init(directory name: String, in directory: borrowing OpenFile) throws(SystemFailure) {
        let parent = directory.descriptor
        descriptor = try systemCall { unsafe openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    }

    /// Opens a file in a directory, but not through a symbolic link, and without waiting for the other end of a pipe.
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

    /// Restricts the file to its owner, who may read and write, whatever the umask.
    package func protect() throws(SystemFailure) { try setMode(0o600) }

    func setMode(_ mode: mode_t) throws(SystemFailure) {
        _ = try systemCall { fchmod(descriptor, mode) }
    }

    /// Locks the file unless it is locked already; the lock ends with this value or the process.
    package func lock() throws(SystemFailure) -> Bool { try lock(LOCK_EX) }

    /// Whether another value has the file locked, in this process or another; concurrent calls don't affect each other.
    package func isLockedElsewhere() throws(SystemFailure) -> Bool { try !lock(LOCK_SH) }

    private func lock(_ kind: Int32) throws(SystemFailure) -> Bool {
        do {
            _ = try systemCall { flock(descriptor, kind | LOCK_NB) }
            return true
        } catch {
            guard error.number == EWOULDBLOCK else { throw error }
            return false
        }
    }

    /// Tries to lock the file for a while, with pauses; returns `false` if it stayed locked.
    func lock(trying limit: Duration) throws(SystemFailure) -> Bool {
        let start = ContinuousClock.now
        while try !lock() {
            guard start.duration(to: .now) < limit else { return false }
            usleep(.random(in: 200...2_000))
        }
        return true
    }

    /// Whether the name still refers to this file.
    package func isStillThere(as name: String, in directory: borrowing OpenFile) throws(SystemFailure) -> Bool {
        guard let other = try directory.status(of: name) else { return false }
        let own = try status()
        return own.st_ino == other.st_ino && own.st_dev == other.st_dev
    }

    /// The status of a name in this directory, without following a symbolic link; `nil` if there is nothing.
    ///
    /// Any other problem is an error.
    func status(of name: String) throws(SystemFailure) -> stat? {
        var status = stat()
        do {
            _ = try systemCall { unsafe fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) }
            return status
        } catch {
            if error.number == ENOENT { return nil }
            throw error
        }
    }

    /// Makes a directory in this one that only its owner may use; not an error if the name is taken.
    func makeDirectory(_ name: String) throws(SystemFailure) {
        do { _ = try systemCall { unsafe mkdirat(descriptor, name, 0o700) } } catch {
            if error.number != EEXIST { throw error }
        }
    }

    /// Removes an empty directory of this one.
    func removeDirectory(_ name: String) throws(SystemFailure) {
        _ = try systemCall { unsafe unlinkat(descriptor, name, AT_REMOVEDIR) }
    }

    /// The names of everything in this directory except itself and its parent.
    package func names() throws(SystemFailure) -> [String] {
        let copy = try systemCall { unsafe openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard let stream = unsafe fdopendir(copy) else {
            let number = errno
            _ = close(copy)
            throw SystemFailure(number: number)
        }
        defer { unsafe _ = closedir(stream) }
        var names: [String] = []
        while true {
            // Only `errno` distinguishes the end from a failure.
            errno = 0
            guard let entry = unsafe readdir(stream) else {
                guard errno == 0 else { throw SystemFailure(number: errno) }
                return names
            }
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 1) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
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

    /// Writes all bytes.
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
    func synchronize() throws(SystemFailure) {
        #if canImport(Darwin)
        // On Apple platforms `fsync` may leave data in the drive's cache; not every volume supports the stronger call.
        if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        do {
            _ = try systemCall { fsync(descriptor) }
        } catch {
            // Some network volumes can't synchronise a directory, and don't need to.
            guard error.number == EINVAL || error.number == ENOTSUP else { throw error }
        }
    }
}

/// Repeats a system call until no signal interrupts it.
func systemCall<Number: SignedInteger>(_ call: () -> Number) throws(SystemFailure) -> Number {
    while true {
        let result = call()
        if result >= 0 { return result }
        let number = errno
        if number != EINTR { throw SystemFailure(number: number) }
    }
}

/// Runs calls that wait for the disk, one after another in the order of the calls, on its own queue.
package struct BlockingCalls: Sendable {
    private let queue: DispatchQueue

    package init(_ label: String) {
        queue = DispatchQueue(label: label)
    }

    package func perform<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        let answer = SingleResult<Value>()
        queue.async { answer.complete(with: Result { try body() }) }
        return try await answer.value()
    }
}
