import Foundation

/// Holds a server's threads, which are its own, until the test opens it; then it stays open.
final class Gate: Sendable {
    private let condition = NSCondition()
    nonisolated(unsafe) private var isOpen = false  // read and written with the condition locked

    func wait() {
        condition.withLock { while unsafe !isOpen { condition.wait() } }
    }

    func open() {
        condition.withLock {
            unsafe isOpen = true
            condition.broadcast()
        }
    }
}
