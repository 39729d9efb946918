#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension ThreadIdentity {
    #if os(Linux)
    /// The number of the thread's current sleep in the kernel, for a lock, a semaphore, input or time; `nil`: it isn't asleep.
    ///
    /// The thread must exist. Sleeps are counted from the thread's start, so equal numbers mean the same sleep. Source:
    /// proc_pid_status(5).
    var sleep: Int? {
        let lines = String(decoding: read("status", count: 4096), as: UTF8.self).split(separator: "\n")
        func value(_ name: String) -> Substring? { lines.last { $0.hasPrefix(name) }?.dropFirst(name.count + 1) }
        guard value("State:")?.first == "S" else { return nil }
        return value("voluntary_ctxt_switches:").flatMap { Int($0) }
    }

    /// Whether the thread sleeps in a call of the system that no lock, condition or semaphore makes, such as one that reads from a socket.
    var awaitsInput: Bool { systemCall.first.map { Int($0) != nil && !Self.futexCalls.contains($0) } ?? false }

    /// "number of the system call, its arguments, …"; "running" if there is none.
    private var systemCall: [Substring] { String(decoding: read("syscall"), as: UTF8.self).split(separator: " ") }

    /// System thread numbers, one of which is the lock holder's if the thread is waiting for a lock.
    ///
    /// To the kernel a lock is a word in memory. That word, or the second one after it, contains the holder's number. Sources:
    /// linux/include/uapi/linux/futex.h, `FUTEX_TID_MASK`; glibc/sysdeps/nptl/bits/struct_mutex.h, `__owner`.
    var possibleHolders: [Int32] {
        // The first argument is the word's address.
        let call = systemCall
        guard call.count > 1, Self.futexCalls.contains(call[0]) else { return [] }
        guard let address = Int(call[1].dropFirst(2), radix: 16) else { return [] }
        // Read through the file, because the memory at the address may have been unmapped.
        let words = Self.read("/proc/self/mem", from: address, count: 12)
        guard words.count == 12 else { return [] }
        return [0, 8].map { start in
            let word = words[start..<start + 4].reversed().reduce(Int32(0)) { $0 << 8 | Int32($1) }
            return word & 0x3fff_ffff
        }
    }

    /// The numbers of `futex` on x86_64 and arm64; on the other of the two, each number belongs to a call that takes no lock.
    private static let futexCalls: Set<Substring> = ["202", "98"]

    private func read(_ name: String, count: Int = 256) -> ArraySlice<UInt8> {
        systemNumber.map { Self.read("/proc/self/task/\($0)/\(name)", count: count) } ?? []
    }

    private static func read(_ path: String, from start: Int = 0, count: Int) -> ArraySlice<UInt8> {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: count)
        let read = unsafe bytes.withUnsafeMutableBytes { unsafe pread(file, $0.baseAddress, $0.count, start) }
        return bytes.prefix(max(read, 0))
    }

    /// The system's number of the thread, which is part of the number of the thread's clock.
    ///
    /// Source: linux/include/linux/posix-timers.h, `MAKE_THREAD_CPUCLOCK`.
    var systemNumber: Int32? {
        var clock = clockid_t()
        guard unsafe pthread_getcpuclockid(pthread_t(number), &clock) == 0 else { return nil }
        return ~(clock >> 3)
    }
    #else
    /// Unknown on this platform: a step that takes long counts as asleep.
    var sleep: Int? { 0 }
    var awaitsInput: Bool { false }
    var possibleHolders: [Int32] { [] }
    var systemNumber: Int32? { nil }
    #endif
}
