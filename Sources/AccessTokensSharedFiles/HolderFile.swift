import AccessTokens
import AccessTokensFiles
import Foundation

/// A file that stays locked as long as its process lives: `.NAME.HOLDER.alive` beside `NAME`.
final class HolderFile: Sendable {
    /// The process's name in marks: 16 hexadecimal digits.
    let name: String
    private let file: TokenFile
    private let entry: String
    /// Closed, and so unlocked, with this object or by the system.
    private let lock: OpenFile

    /// How many files of ended processes a new holder checks at most, so that it starts quickly.
    private static let swept = 100

    init(beside file: TokenFile) throws {
        let directory = try file.openDirectory()
        Self.sweep(directory, beside: file)
        while true {
            let name = TokenFile.newDigits(), entry = Self.entry(name, beside: file)
            if let lock = try Self.create(entry, in: directory, beside: file) {
                (self.name, self.file, self.entry) = (name, file, entry)
                self.lock = lock
                return
            }
        }
    }

    /// Creates and locks a file; `nil` if another holder's sweep came in between, and has locked or removed the file.
    private static func create(
        _ entry: String, in directory: borrowing OpenFile, beside file: TokenFile
    ) throws(SystemFailure) -> OpenFile? {
        let lock = try OpenFile(entry, in: directory, O_RDWR | O_CREAT | O_EXCL)
        do {
            try lock.protect()
            if try lock.lock(), try lock.isStillThere(as: entry, in: directory) { return lock }
            try file.unlink(entry, in: directory)
            return nil
        } catch {
            try? file.unlink(entry, in: directory)
            throw error
        }
    }

    deinit {
        if let directory = try? file.openDirectory() { try? file.unlink(entry, in: directory) }
    }

    /// Whether the file still has its name; a cleaner may have removed it.
    func isStillThere() throws -> Bool { try lock.isStillThere(as: entry, in: try file.openDirectory()) }

    /// Whether a holder's file exists and is locked; removes the file if its process has ended.
    static func isLocked(_ holder: String, beside file: TokenFile) throws -> Bool {
        guard isName(holder.utf8) else { return true }
        let directory = try file.openDirectory()
        let name = entry(holder, beside: file)
        return try !removeIfEnded(name, in: directory, beside: file)
    }

    /// Removes the files of processes that ended without removing theirs, as far as possible.
    ///
    /// A failure must not prevent a holder from starting.
    private static func sweep(_ directory: borrowing OpenFile, beside file: TokenFile) {
        let entries = (try? directory.names()) ?? []
        for entry in entries.filter({ isEntry($0, beside: file) }).shuffled().prefix(swept) {
            _ = try? removeIfEnded(entry, in: directory, beside: file)
        }
    }

    /// Whether a holder has ended: its file is gone, or can be locked and is removed.
    private static func removeIfEnded(
        _ entry: String, in directory: borrowing OpenFile, beside file: TokenFile
    ) throws(SystemFailure) -> Bool {
        do {
            let other = try OpenFile(entry, in: directory, O_RDWR)
            if try other.isLockedElsewhere() { return false }
            // Between opening and locking, another file may have got the name.
            if try other.isStillThere(as: entry, in: directory) { try? file.unlink(entry, in: directory) }
            // Keep the lock until the name is gone: else a holder that has just created the file could lock and use it.
            _ = consume other
            return true
        } catch {
            if error.number == ENOENT { return true }
            throw error
        }
    }

    /// Whether a holder beside this file would use such a name; compared byte by byte, as the system does.
    private static func isEntry(_ entry: String, beside file: TokenFile) -> Bool {
        let name = entry.utf8.dropFirst(file.name.utf8.count + 2).prefix(16)
        return isName(name) && entry.utf8.elementsEqual(Self.entry(String(decoding: name, as: UTF8.self), beside: file).utf8)
    }

    private static func isName(_ name: some Collection<UInt8>) -> Bool {
        name.count == 16 && TokenFile.areDigits(name)
    }

    private static func entry(_ holder: String, beside file: TokenFile) -> String { ".\(file.name).\(holder).alive" }
}

/// A moment, measured from the machine's start; all processes agree on it, even if the time of day is changed.
struct BootTime: Equatable {
    /// Identifies the current start of the machine.
    let boot: String
    /// Milliseconds since that start, without the machine's sleep, during which no load makes progress.
    let uptime: Int64
    /// The time of day in milliseconds since 1970, for comparison with a moment before the last start.
    let wall: Int64

    init(boot: String, uptime: Int64, wall: Int64) {
        (self.boot, self.uptime, self.wall) = (boot, uptime, wall)
    }

    /// The current moment; `nil` if the system can't provide it.
    static var now: BootTime? {
        guard let boot = currentBoot else { return nil }
        #if canImport(Darwin)
        let clock = CLOCK_UPTIME_RAW
        #else
        let clock = CLOCK_MONOTONIC
        #endif
        var time = timespec()
        guard unsafe clock_gettime(clock, &time) == 0 else { return nil }
        let uptime = Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
        let wall = (Date().timeIntervalSince1970 * 1_000).rounded()
        return BootTime(boot: boot, uptime: uptime, wall: Int64(exactly: wall) ?? 0)
    }

    /// Read once: it stays the same while the machine runs.
    private static let currentBoot: String? = {
        #if canImport(Darwin)
        var bytes = [CChar](repeating: 0, count: 64), count = 64
        guard unsafe sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
        let text = String(decoding: bytes.prefix(while: { $0 != 0 }).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        #else
        guard let boot = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8) else { return nil }
        // In a time namespace, the clock may start at a different time.
        let namespace = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/time")
        let text = boot + (namespace ?? "")
        #endif
        let word = text.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
        return word.isEmpty ? nil : word
    }()

    /// Reads what ``text`` wrote.
    init?(_ words: some Collection<Substring>) {
        let words = Array(words)
        guard words.count == 3, let uptime = Int64(words[1]), let wall = Int64(words[2]) else { return nil }
        guard uptime >= 0, wall >= 0 else { return nil }
        self.init(boot: String(words[0]), uptime: uptime, wall: wall)
    }

    /// Three words: the boot, the uptime, the time of day.
    var text: String { "\(boot) \(uptime) \(wall)" }

    /// Returns how long ago this moment was, at least.
    ///
    /// If the machine was restarted in between, or the file comes from another machine, the age is the smaller one of the
    /// difference in time of day and the time since the start.
    func age(at now: BootTime) -> Duration {
        let age = now.boot == boot ? now.uptime.clamped(minus: uptime) : min(now.uptime, now.wall.clamped(minus: wall))
        return .milliseconds(age)
    }
}

extension Int64 {
    /// Returns the difference of two non-negative times; never less than zero.
    fileprivate func clamped(minus other: Int64) -> Int64 { Swift.max(self - other, 0) }
}
