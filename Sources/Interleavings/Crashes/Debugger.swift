#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A debugger that is attached to this process.
enum Debugger {
    /// Writes a text to standard error and lets the debugger stop the process; without a debugger, this would end the process.
    static func stop(_ text: String) {
        StandardError.write("\nInterleavings: \(text)\n")
        raise(SIGTRAP)
    }

    #if canImport(Darwin)
    /// Whether a debugger is attached, as the system reports.
    static var isAttached: Bool {
        var info = kinfo_proc()
        var size = MemoryLayout<kinfo_proc>.stride
        var query = [CTL_KERN, KERN_PROC, KERN_PROC_PID, getpid()]
        let result = unsafe sysctl(&query, UInt32(query.count), &info, &size, nil, 0)
        return result == 0 && info.kp_proc.p_flag & P_TRACED != 0
    }
    #else
    /// Whether a debugger is attached: the kernel reports the number of its process.
    static var isAttached: Bool {
        let file = unsafe open("/proc/self/status", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
        return isTraced(String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self))
    }
    #endif

    /// Whether a process's status, in Linux's format, has a tracer.
    static func isTraced(_ status: String) -> Bool {
        let line = status.split(separator: "\n").first { $0.hasPrefix("TracerPid:") }
        return line?.split(whereSeparator: \.isWhitespace).last.flatMap { Int($0) } ?? 0 != 0
    }
}
