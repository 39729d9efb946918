import Dispatch
import Foundation

/// Runs an actor's work on a thread that it may block.
///
/// Swift's own threads are as few as the processors. If calls block them,
/// the whole program waits.
final class BlockingExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "blocking calls")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { [self] in
            unsafe job.runSynchronously(on: asUnownedSerialExecutor())
        }
    }
}

/// Waits until a socket is readable, or writable; returns whether it is.
///
/// An idle connection that is readable was closed by the server.
func isReady(
    _ socket: Int32, _ events: Int32 = POLLIN,
    within time: Duration = .zero
) -> Bool {
    var entry = pollfd(fd: socket, events: Int16(events), revents: 0)
    let milliseconds = max(time, .zero) / .milliseconds(1)
    return unsafe poll(&entry, 1, Int32(milliseconds)) != 0
}

/// Calls a function with pointers to values, as libraries in C take them.
func withPointers<Result>(
    to values: [Data], _ body: ([UnsafePointer<CChar>?]) -> Result
) -> Result {
    let bytes = values.joined().map { CChar(bitPattern: $0) } + [0]
    return unsafe bytes.withUnsafeBufferPointer { buffer in
        var offset = 0
        let pointers = unsafe values.map { value in
            defer { offset += value.count }
            return unsafe buffer.baseAddress.map { unsafe $0 + offset }
        }
        return unsafe body(pointers)
    }
}
