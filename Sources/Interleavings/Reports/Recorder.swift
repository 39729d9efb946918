/// Collects a trace while an execution runs.
struct Recorder: Sendable {
    private(set) var trace = Trace()

    mutating func name(_ name: String) {
        if !name.isEmpty, !trace.names.contains(name) { trace.names.append(name) }
    }

    /// A name like this one that nobody has: of two equal ones a diagram would make one column.
    func unused(_ name: String) -> String {
        guard trace.names.contains(name) else { return name }
        var number = 2
        while trace.names.contains("\(name) (\(number))") { number += 1 }
        return "\(name) (\(number))"
    }

    mutating func begin(_ step: Trace.Step) {
        trace.steps.append(step)
    }

    mutating func log(_ text: String, by task: String, kind: Trace.Event.Kind) {
        guard !trace.steps.isEmpty else { return }
        trace.steps[trace.steps.count - 1].events.append(Trace.Event(task: task, text: text, kind: kind))
    }

    /// A value as an event shows it: an optional without its wrapping, a function as "ƒ".
    static func brief(_ value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .optional else {
            // All that the language says of a function, and there may be many in a value.
            return String(describing: value).replacing("(Function)", with: "ƒ")
        }
        return mirror.children.first.map { brief($0.value) } ?? "nil"
    }
}
