import Foundation
import Synchronization
import Testing
import TokenServiceConcurrency

@testable import Interleavings

/// How the explorer detects at once that a step waits for a lock that another thread holds.
@Suite struct `The holder of a lock` {
    #if os(Linux)
    @Test func `is known for a mutex of the C library`() {
        let lock = NSLock()
        expectHolder { body in lock.withLock { body() } }
    }

    @Test func `is known for a lock with priority inheritance`() {
        let mutex = Mutex(())
        expectHolder { body in mutex.withLock { _ in body() } }
    }

    @Test func `isn't known for a thread that waits for a semaphore, nor for a running one`() {
        let (waiter, isDue) = (Waiter(), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            waiter.begin()
            isDue.wait()
        }
        let thread = waiter.thread()
        while thread.sleep == nil { Thread.sleep(forTimeInterval: 0) }
        #expect(!thread.possibleHolders.contains(ThreadIdentity.current.systemNumber ?? 0))
        isDue.signal()
        #expect(ThreadIdentity.current.possibleHolders.isEmpty)
    }

    @Test func `a thread that wakes and sleeps again is told apart, since each of its sleeps has a number`() {
        let (waiter, first, second) = (Waiter(), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            waiter.begin()
            first.wait()
            second.wait()
        }
        let thread = waiter.thread()
        var sleep = thread.sleep
        while sleep == nil { sleep = thread.sleep }
        first.signal()
        var next = thread.sleep
        while next == nil || next == sleep { next = thread.sleep }
        #expect(next ?? 0 > sleep ?? 0)
        second.signal()
    }

    /// Holds a lock while another thread waits for it.
    private func expectHolder(_ withLock: @escaping @Sendable (() -> Void) -> Void) {
        let (waiter, hasEnded) = (Waiter(), DispatchSemaphore(value: 0))
        withLock {
            Thread.detachNewThread {
                waiter.begin()
                withLock {}
                hasEnded.signal()
            }
            let thread = waiter.thread()
            while thread.sleep == nil { Thread.sleep(forTimeInterval: 0) }
            #expect(thread.possibleHolders.contains(ThreadIdentity.current.systemNumber ?? 0))
        }
        hasEnded.wait()
    }

    /// Passes on the identity of another thread.
    private final class Waiter: Sendable {
        private let identity = Lock<ThreadIdentity?>(nil)
        private let isKnown = DispatchSemaphore(value: 0)

        func begin() {
            identity.withLock { $0 = .current }
            isKnown.signal()
        }

        func thread() -> ThreadIdentity {
            isKnown.wait()
            return identity.withLock { $0 } ?? .current
        }
    }
    #endif
}
