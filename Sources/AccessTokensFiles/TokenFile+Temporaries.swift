import Foundation

/// The temporary files: `.NAME.0123456789abcdef.tmp` beside `NAME`.
///
/// The process that writes a temporary file has it locked, and the system unlocks it when the process ends, for whatever reason.
/// So a file that can be locked is a leftover, and one that can't belongs to a running save, in this process or another.
extension TokenFile {
    /// Writes the bytes to a temporary file and puts it in the token file's place.
    func replace(with bytes: [UInt8], in directory: borrowing OpenFile) throws(SystemFailure) {
        try rename(try write(bytes, in: directory), to: name, in: directory)
    }

    /// Keeps unreadable bytes beside the file that replaces them; only the latest ones.
    package func setAside(_ bytes: [UInt8], in directory: borrowing OpenFile) throws(SystemFailure) {
        if !bytes.isEmpty { try rename(try write(bytes, in: directory), to: aside, in: directory) }
    }

    /// The name for unreadable bytes: `.NAME.damaged`.
    package var aside: String { prefix + "damaged" }

    /// Writes the bytes to a temporary file and waits until the disk has them.
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

    /// Gives a temporary file another name, replacing the file of that name, and waits for the directory.
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

    /// Gives a temporary file the token file's name and waits for the directory; `false` if a file of that name exists.
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
            let temporary = prefix + Self.newDigits() + Self.suffix
            let file: OpenFile
            do {
                file = try OpenFile(temporary, in: directory, O_WRONLY | O_CREAT | O_EXCL)
            } catch {
                if error.number == EEXIST { continue }
                throw error
            }
            do {
                try file.protect()
                // Another process's clean-up can come between the creation and the lock, and take the file for a leftover. Then
                // that process has the lock, or the name is gone. A volume without locks has no clean-up either.
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

    /// Removes the temporary files of killed processes, as far as possible.
    ///
    /// A failure must neither lose a new token nor report a removed one as kept: the next operation removes them.
    package func removeLeftovers(in directory: borrowing OpenFile) {
        for entry in (try? directory.names()) ?? [] where isTemporary(entry) {
            guard let file = try? OpenFile(entry, in: directory), (try? file.lock()) ?? false else { continue }
            try? unlink(entry, in: directory)
        }
    }

    /// Whether a save of this token file uses such a name; compared byte by byte, as the system does.
    func isTemporary(_ entry: String) -> Bool {
        let bytes = Array(entry.utf8)
        guard bytes.count == prefix.utf8.count + 16 + Self.suffix.utf8.count, bytes.starts(with: prefix.utf8) else {
            return false
        }
        let rest = bytes.dropFirst(prefix.utf8.count)
        return Self.areDigits(rest.prefix(16)) && rest.dropFirst(16).elementsEqual(Self.suffix.utf8)
    }

    /// 16 hexadecimal digits that no other file has.
    package static func newDigits() -> String {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    package static func areDigits(_ text: some Sequence<UInt8>) -> Bool {
        text.allSatisfy { "0123456789abcdef".utf8.contains($0) }
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
