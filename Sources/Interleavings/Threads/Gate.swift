/// The condition of a stopped thread: it is not picked until the gate is open.
package protocol Gate: AnyObject, Sendable {
    /// Its name in reports: "the lock 'cache'".
    var title: String { get }
    /// Whether one thread may pass.
    ///
    /// Read before each step, under the engine's lock; only steps change it.
    var isOpen: Bool { get }
    /// The task that keeps it shut, by the engine's number; `nil`: no particular one.
    var holder: Int? { get }
    /// The system's number of that task's thread, if only that is known.
    var owner: Int32? { get }
}

extension Gate {
    package var holder: Int? { nil }
    package var owner: Int32? { nil }
}
