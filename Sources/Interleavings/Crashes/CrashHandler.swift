import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Writes the running schedules to standard error when the process crashes.
///
/// The handler is installed while explorations run, and passes each signal on to the previous handler, such as Swift's
/// own, which prints a backtrace. It only reads memory and calls `write`.
final class CrashHandler: Sendable {
    static let shared = CrashHandler()

    /// The handler's data: plain memory that is never freed, since a handler can't take a lock.
    @safe private struct Table: @unchecked Sendable {
        /// The memory of each box in use.
        let boxes = UnsafeMutablePointer<UnsafeMutableRawPointer?>.allocate(capacity: Self.size)
        /// The previous actions, by signal.
        let actions = UnsafeMutablePointer<sigaction>.allocate(capacity: 64)

        static let size = 64

        init() {
            unsafe boxes.initialize(repeating: nil, count: Self.size)
            unsafe actions.initialize(repeating: sigaction(), count: 64)
        }
    }

    private static let table = Table()
    /// How many boxes are in use; only under this lock are they added and removed.
    private let count = Lock(0)

    private static let signals = [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE]

    /// Beyond 64 boxes, a box is not written out at a crash; its file is found at the next run.
    func add(_ box: BlackBox) {
        count.withLock { count in
            guard let free = (0..<Table.size).first(where: { unsafe Self.table.boxes[$0] == nil }) else { return }
            unsafe Self.table.boxes[free] = box.memory
            count += 1
            if count == 1 { Self.install() }
        }
    }

    func remove(_ box: BlackBox) {
        count.withLock { count in
            guard let own = (0..<Table.size).first(where: { unsafe Self.table.boxes[$0] == box.memory }) else { return }
            unsafe Self.table.boxes[own] = nil
            count -= 1
            if count == 0 { Self.uninstall() }
        }
    }

    private static func install() {
        // Call it once without output, so that everything is initialized before a crash.
        tell(to: -1, marks: false)
        for signal in signals {
            var action = sigaction()
            setHandler(of: &action)
            action.sa_flags = Int32(SA_SIGINFO) | Int32(SA_ONSTACK)
            unsafe sigaction(signal, &action, table.actions + Int(signal))
        }
    }

    /// Restores the actions, unless another handler has been installed over ours, which may call ours.
    private static func uninstall() {
        for signal in signals {
            var present = sigaction()
            unsafe sigaction(signal, nil, &present)
            if isOurs(present) { unsafe sigaction(signal, table.actions + Int(signal), nil) }
        }
    }

    /// Writes the schedule of the crashing thread, or all running ones if it runs none.
    private static func tell(to descriptor: Int32, marks: Bool) {
        let thread = ThreadIdentity.current.number
        var found = false
        for pass in 0...1 where !found {
            for index in 0..<Table.size {
                guard let memory = unsafe table.boxes[index] else { continue }
                guard unsafe pass == 1 || BlackBox.thread(of: memory) == thread else { continue }
                unsafe BlackBox.write(memory, to: descriptor)
                if marks { unsafe BlackBox.markTold(memory) }
                found = true
            }
        }
    }

    /// Runs in the crashing thread, possibly in the middle of an allocation.
    private static let handler: @convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void = {
        signal, info, _ in
        CrashHandler.tell(to: STDERR_FILENO, marks: true)
        // The earlier action handles the signal next: a fault recurs by itself, with its address.
        unsafe sigaction(signal, CrashHandler.table.actions + Int(signal), nil)
        let isFault = unsafe (info?.pointee.si_code ?? 0) > 0 && signal != SIGTRAP
        if !isFault { raise(signal) }
    }
}

extension CrashHandler {
    #if canImport(Darwin)
    private static func setHandler(of action: inout sigaction) {
        unsafe action.__sigaction_u.__sa_sigaction = handler
    }
    private static func address(of action: sigaction) -> Int {
        unsafe unsafeBitCast(action.__sigaction_u, to: Int.self)
    }
    #elseif canImport(Musl)
    private static func setHandler(of action: inout sigaction) {
        unsafe action.__sa_handler.sa_sigaction = handler
    }
    private static func address(of action: sigaction) -> Int {
        unsafe unsafeBitCast(action.__sa_handler, to: Int.self)
    }
    #else
    private static func setHandler(of action: inout sigaction) {
        unsafe action.__sigaction_handler.sa_sigaction = handler
    }
    private static func address(of action: sigaction) -> Int {
        unsafe unsafeBitCast(action.__sigaction_handler, to: Int.self)
    }
    #endif

    private static func isOurs(_ action: sigaction) -> Bool {
        var own = sigaction()
        setHandler(of: &own)
        return address(of: action) == address(of: own)
    }
}
