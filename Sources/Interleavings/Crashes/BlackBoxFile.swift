import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A black box's file, in a folder of the user's in the temporary directory.
///
/// The process holds a lock on it as long as it lives, so that a later process can distinguish a leftover from a box in use. Its name
/// begins with that of the package, whose next run reports it.
@safe final class BlackBoxFile: @unchecked Sendable {
    /// Mapped until the file object is freed; only the box writes to it.
    let memory: UnsafeMutableRawPointer
    private let size: Int
    private let path: String
    private let descriptor: Int32

    private static let count = Lock(0)

    /// Creates a file; `nil` if that is not possible.
    convenience init?(size: Int, package: String) {
        guard let folder = Self.folder else { return nil }
        let number = Self.count.withLock { count in
            count += 1
            return count
        }
        self.init(path: "\(folder)/\(package)-\(getpid())-\(number)", flags: O_RDWR | O_CREAT | O_EXCL, size: size)
    }

    /// Opens or creates a file that no process holds.
    private init?(path: String, flags: Int32, size: Int) {
        let descriptor = unsafe open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return nil }
        // Readers share the lock; otherwise one would consider a file that another is reading to be in use.
        let isNew = flags & O_CREAT != 0
        guard flock(descriptor, isNew ? LOCK_EX : LOCK_SH | LOCK_NB) == 0, Self.fill(descriptor, size, isNew: isNew),
            let memory = unsafe mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            unsafe memory != UnsafeMutableRawPointer(bitPattern: -1)
        else {
            systemClose(descriptor)
            return nil
        }
        (self.path, self.descriptor, self.size) = (path, descriptor, size)
        unsafe self.memory = memory
    }

    deinit {
        unsafe munmap(memory, size)
        systemClose(descriptor)
    }

    /// Removes the file; returns `false` if another process was faster.
    @discardableResult
    func remove() -> Bool { unsafe unlink(path) == 0 }

    /// Writes a new file to its full size, since with a full disk a later write to the memory would crash the process; checks the
    /// size of an old one.
    private static func fill(_ descriptor: Int32, _ size: Int, isNew: Bool) -> Bool {
        guard isNew else { return lseek(descriptor, 0, SEEK_END) == off_t(size) }
        let zeros = [UInt8](repeating: 0, count: size)
        return unsafe zeros.withUnsafeBytes { unsafe systemWrite(descriptor, $0.baseAddress, size) } == size
    }

    /// The folder, which only this user may write; `nil`: there is none.
    private static let folder: String? = {
        let parent = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
        let folder = "\(parent)/interleavings-\(getuid())"
        unsafe mkdir(folder, 0o700)
        var status = stat()
        guard unsafe lstat(folder, &status) == 0, status.st_uid == getuid() else { return nil }
        return status.st_mode & S_IFMT == S_IFDIR && status.st_mode & 0o077 == 0 ? folder : nil
    }()

    /// The name of the program's package: a hash of the folder above its `.build`, or else of the program's path.
    static let package: String = {
        let path = CommandLine.arguments.first { $0.contains("/.build/") } ?? CommandLine.arguments.first ?? ""
        var name = Fingerprint()
        name.mix(path.split(separator: "/.build/", maxSplits: 1).first.map(String.init) ?? "")
        return name.text
    }()

    /// More boxes of crashes that nobody looks at aren't kept.
    private static let mostKept = 50

    /// Takes what earlier processes of the package left, and removes their files.
    ///
    /// What a crash has reported itself is left for the exploration that can draw it.
    static func takeLeft(by origin: String, of package: String) -> [BlackBox.Left] {
        guard let folder else { return [] }
        let names = names(in: folder).filter { $0.hasPrefix("\(package)-") }
        return names.compactMap { name in
            let path = "\(folder)/\(name)"
            // A file that another process holds is in use.
            guard let file = BlackBoxFile(path: path, flags: O_RDWR, size: BlackBox.size) else { return nil }
            let left = unsafe BlackBox.left(in: file.memory)
            if let left, left.text == nil, left.origin != origin, names.count < mostKept { return nil }
            return file.remove() ? left : nil
        }
    }

    private static func names(in folder: String) -> [String] {
        guard let directory = unsafe opendir(folder) else { return [] }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names
    }
}

/// The process's standard error.
package enum StandardError {
    package static func write(_ text: String) {
        var text = text
        text.withUTF8 { unsafe _ = systemWrite(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    unsafe write(descriptor, bytes, count)
}

private func systemClose(_ descriptor: Int32) { close(descriptor) }
