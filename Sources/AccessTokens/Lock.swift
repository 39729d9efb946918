public import Synchronization

/// The one lock of the package: a `Mutex` whose critical sections Thread Sanitizer can order.
///
/// Hold it for a few instructions: never across a suspension, never around foreign code. Inlinable, so that other modules of
/// the package get it made for their type, too: through generic code a callback's hit took half as long again.
@usableFromInline
package struct Lock<Value>: ~Copyable, Sendable {
    // On Linux the slow path of `Mutex` is not instrumented: the sanitizer misses that an unlock happens before the next
    // lock, and reports races that are none. Whoever has the lock first reads what the last one wrote here before it let
    // go, which tells the sanitizer. It orders nothing that the mutex doesn't; a load and a store, both under the lock,
    // are two plain moves on x86, so there is no build without it. In front of the mutex, whose word comes first: behind
    // its value, it would be a second cache line that threads take from each other.
    @usableFromInline let edge = Atomic<Bool>(false)
    @usableFromInline let mutex: Mutex<Value>

    /// Creates a lock around a value.
    @inlinable package init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }

    /// Runs `body` while nobody else has the value.
    @inlinable
    @inline(__always)
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock { value throws(Failure) in
            _ = edge.load(ordering: .acquiring)
            defer { edge.store(true, ordering: .releasing) }
            return try body(&value)
        }
    }
}
