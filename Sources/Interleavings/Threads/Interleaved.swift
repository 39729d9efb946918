/// A point where an exploration at the granularity of accesses may switch to another thread.
///
/// Put one before each access to state that threads share; ``Interleaved`` variables and ``InterleavedLock`` have theirs
/// built in. Outside such an exploration it does nothing.
///
/// - Parameter label: What happens next, for the report.
public func interleavingPoint(_ label: @autoclosure () -> String = "") {
    guard let thread = ControlledThread.current else { return }
    thread.pause()
    thread.note(label())
}

/// A variable whose reads and writes are interleaving points.
///
/// Use it in unsynchronised code, to see what happens on several threads: `@Interleaved("token") var token: Token?`. In an
/// exploration one thread runs at a time, so there is no data race. Anywhere else it is a plain variable, and using it from
/// several threads at once is a data race, as with any other.
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
    ///
    /// A check may read it after the concurrent work: if nothing else can run, a point adds no schedules.
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
}
