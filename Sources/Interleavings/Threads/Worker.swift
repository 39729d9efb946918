import Dispatch
import TokenServiceConcurrency

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A thread of its own that runs one body after another, until the worker is released.
///
/// Not a Dispatch thread: their number is limited, and all of them may be stopped at once.
final class Worker: Sendable {
    /// The state that the thread retains.
    fileprivate final class Line: Sendable {
        let isDue = DispatchSemaphore(value: 0)
        let body = Lock<(@Sendable () -> Void)?>(nil)

        func run() {
            while true {
                isDue.wait()
                let next = body.withLock { body in
                    defer { body = nil }
                    return body
                }
                guard let next else { return }
                next()
            }
        }
    }

    private let line = Line()
    private let hasThread = Lock(false)

    deinit {
        // Without a body the thread ends.
        line.isDue.signal()
    }

    /// Runs a body; the previous one must have ended.
    ///
    /// - Returns: Whether there is a thread for it.
    func run(_ body: @escaping @Sendable () -> Void) -> Bool {
        line.body.withLock { $0 = body }
        let isThere = hasThread.withLock { hasThread in
            if !hasThread { hasThread = Self.start(line) }
            return hasThread
        }
        if isThere { line.isDue.signal() }
        return isThere
    }

    private static func start(_ line: Line) -> Bool {
        let context = unsafe Unmanaged.passRetained(line).toOpaque()
        #if canImport(Darwin)
        var thread: pthread_t?
        #else
        var thread = pthread_t()
        #endif
        let error = unsafe pthread_create(&thread, nil, { context in unsafe live(context) }, context)
        guard error == 0 else {
            unsafe Unmanaged<Line>.fromOpaque(context).release()
            return false
        }
        #if canImport(Darwin)
        if let thread = unsafe thread { unsafe pthread_detach(thread) }
        #else
        pthread_detach(thread)
        #endif
        return true
    }
}

/// The main function of a worker's thread.
///
/// Safe because `start` has retained the line for this.
private func live(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let context = unsafe context { unsafe Unmanaged<Worker.Line>.fromOpaque(context).takeRetainedValue().run() }
    return nil
}
