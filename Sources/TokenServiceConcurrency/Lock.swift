public import Synchronization

/// A `Mutex` whose critical sections Thread Sanitizer can order: the lock that all our modules use.
///
/// Hold it for a few instructions: never across a suspension, never around foreign code. It is inlinable, so that each module
/// compiles it for its own types: called as generic code, it made a callback's hit take half as long again.
@usableFromInline
package struct Lock<Value>: ~Copyable, Sendable {
    // On Linux the slow path of `Mutex` is not instrumented: the sanitizer misses that an unlock happens before the next
    // lock, and reports races that don't exist. Each owner of the lock first reads what its predecessor wrote here before
    // unlocking, which tells the sanitizer. This orders nothing that the mutex doesn't order. A load and a store, both under
    // the lock, are two plain moves on x86, so there is no build without them. `edge` is placed before the mutex, whose word
    // comes first: behind the mutex's value it would be a second cache line for threads to take from each other.
    @usableFromInline let edge = Atomic<Bool>(false)
    @usableFromInline let mutex: Mutex<Value>

    /// Creates a lock around a value.
    @inlinable package init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }

    /// Runs `body` with exclusive access to the value.
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
