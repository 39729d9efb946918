import Foundation

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
        // In a time namespace, the clock may start at another moment.
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

    /// How long before another moment this one was, at least.
    ///
    /// If the machine was restarted in between, or the file comes from another machine, the age is the smaller one of the
    /// difference in time of day and the time since the start.
    func age(at now: BootTime) -> Duration {
        let age = now.boot == boot ? now.uptime.clamped(minus: uptime) : min(now.uptime, now.wall.clamped(minus: wall))
        return .milliseconds(age)
    }
}

extension Int64 {
    /// The difference of two times that aren't negative; never less than zero.
    fileprivate func clamped(minus other: Int64) -> Int64 { Swift.max(self - other, 0) }
}
