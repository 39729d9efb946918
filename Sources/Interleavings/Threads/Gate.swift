/// The condition of a stopped thread: it is not picked until the gate is open.
package protocol Gate: AnyObject, Sendable {
    /// Its name in reports: "the lock 'cache'".
    var title: String { get }
    /// Whether one thread may pass.
    ///
    /// The engine asks before each step, under its lock; the answer changes only by what steps do.
    var isOpen: Bool { get }
}
