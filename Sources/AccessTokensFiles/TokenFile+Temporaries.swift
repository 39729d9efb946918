#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The temporary files: `.NAME.0123456789abcdef.tmp` beside `NAME`.
///
/// The process that writes one has it locked, and the system unlocks it when the process dies, however it dies. So one that can
/// be locked is a left-over, and one that cannot belongs to a running save, in this process or another.
extension TokenFile {
    /// Writes the bytes to a temporary file and puts it in the token file's place.
    func replace(with bytes: [UInt8], in directory: borrowing OpenFile) throws(SystemFailure) {
        try rename(try write(bytes, in: directory), to: name, in: directory)
    }

    /// Keeps bytes that can't be read beside the file that comes in their place; of several, the last.
    package func setAside(_ bytes: [UInt8], in directory: borrowing OpenFile) throws(SystemFailure) {
        if !bytes.isEmpty { try rename(try write(bytes, in: directory), to: aside, in: directory) }
    }

    /// The name for bytes that can't be read: `.NAME.damaged`.
    package var aside: String { prefix + "damaged" }

    /// Writes the bytes to a temporary file, which the disk has when this returns.
    package func write(_ bytes: [UInt8], in directory: borrowing OpenFile) throws(SystemFailure) -> Temporary {
        let temporary = try createTemporary(in: directory)
        do {
            try temporary.file.write(bytes)
            try temporary.file.synchronize()
        } catch {
            try? unlink(temporary.name, in: directory)
            throw error
        }
        return temporary
    }

    /// Gives a temporary file another name, in place of the file that has it, and waits for the directory.
    package func rename(
        _ temporary: consuming Temporary, to name: String, in directory: borrowing OpenFile
    ) throws(SystemFailure) {
        let parent = directory.descriptor, old = temporary.name
        do { _ = try systemCall { unsafe renameat(parent, old, parent, name) } } catch {
            try? unlink(old, in: directory)
            throw error
        }
        try directory.synchronize()
    }

    /// Gives a temporary file the token file's name, if no file has it, and waits for the directory; `false`: one has it.
    package func create(from temporary: consuming Temporary, in directory: borrowing OpenFile) throws(SystemFailure) -> Bool {
        let parent = directory.descriptor, old = temporary.name
        do { _ = try systemCall { unsafe linkat(parent, old, parent, name, 0) } } catch {
            try? unlink(old, in: directory)
            if error.number == EEXIST { return false }
            throw error
        }
        try unlink(old, in: directory)
        try directory.synchronize()
        return true
    }

    private func createTemporary(in directory: borrowing OpenFile) throws(SystemFailure) -> Temporary {
        while true {
            let digits = String(UInt64.random(in: .min ... .max), radix: 16)
            let temporary = prefix + String(repeating: "0", count: 16 - digits.count) + digits + Self.suffix
            let file: OpenFile
            do {
                file = try OpenFile(temporary, in: directory, O_WRONLY | O_CREAT | O_EXCL)
            } catch {
                if error.number == EEXIST { continue }
                throw error
            }
            do {
                try file.protect()
                // Another process's clean-up can come between the creation and the lock and take the file for a left-over:
                // then it has the lock, or the name is gone. A volume without locks has no clean-up either.
                guard (try? file.lock()) ?? true else { continue }
                _ = try OpenFile(temporary, in: directory)
            } catch {
                if error.number == ENOENT { continue }
                try? unlink(temporary, in: directory)
                throw error
            }
            return Temporary(name: temporary, file: file)
        }
    }

    /// Removes the temporary files of killed processes, as far as it can.
    ///
    /// A failure must not lose a new token, or report a removed one as kept: the next operation tries again.
    package func removeLeftovers(in directory: borrowing OpenFile) {
        for entry in (try? directory.names()) ?? [] where isTemporary(entry) {
            guard let file = try? OpenFile(entry, in: directory), (try? file.lock()) ?? false else { continue }
            try? unlink(entry, in: directory)
        }
    }

    /// Whether a name is one that a save of this token file gives; compared byte by byte, as the system does.
    func isTemporary(_ entry: String) -> Bool {
        let bytes = Array(entry.utf8)
        guard bytes.count == prefix.utf8.count + 16 + Self.suffix.utf8.count, bytes.starts(with: prefix.utf8) else {
            return false
        }
        let rest = bytes.dropFirst(prefix.utf8.count)
        return rest.prefix(16).allSatisfy { "0123456789abcdef".utf8.contains($0) }
            && rest.dropFirst(16).elementsEqual(Self.suffix.utf8)
    }

    package func unlink(_ name: String, in directory: borrowing OpenFile) throws(SystemFailure) {
        let parent = directory.descriptor
        do {
            _ = try systemCall { unsafe unlinkat(parent, name, 0) }
        } catch {
            if error.number != ENOENT { throw error }
        }
    }

    /// A temporary file, locked as long as this value lives.
    package struct Temporary: ~Copyable {
        package let name: String
        let file: OpenFile
    }

    private var prefix: String { ".\(name)." }
    private static let suffix = ".tmp"
}
