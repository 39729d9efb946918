/// A point where an exploration at the granularity of accesses may switch to another thread.
///
/// Put one before each access to state that threads share; ``Interleaved`` variables and ``InterleavedLock`` have theirs
/// built in. Outside such an exploration it does nothing.
///
/// - Parameter label: What is about to happen; shown in the report.
public func interleavingPoint(_ label: @autoclosure () -> String = "") {
    guard let worker = Worker.current else { return }
    worker.pause()
    worker.note(label())
}

/// A variable whose reads and writes are interleaving points.
///
/// For code without synchronisation, to see what it would do on several threads: `@Interleaved("token") var token: Token?`.
/// Under an exploration one thread runs at a time, so there is no data race to be undefined. Anywhere else it is a plain
/// variable, and who uses it from several threads at once has a data race, as with any.
@propertyWrapper
public final class Interleaved<Value> {
    private var value: Value
    private let label: String

    /// Creates a variable.
    ///
    /// - Parameters:
    ///   - wrappedValue: The first value.
    ///   - label: The variable's name in reports.
    public init(wrappedValue: Value, _ label: String) {
        value = wrappedValue
        self.label = label
    }

    /// The value; reading and writing are points where another thread may run.
    public var wrappedValue: Value {
        get {
            interleavingPoint("reads \(label): \(Recorder.brief(value))")
            return value
        }
        set {
            interleavingPoint("writes \(label): \(Recorder.brief(newValue))")
            value = newValue
        }
    }

    /// The value, without letting anybody else run: for looking at it afterwards.
    public var projectedValue: Value { value }
}
