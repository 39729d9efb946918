/// The steps of one execution and their events: a report's diagram is drawn from it.
package struct Trace: Sendable, Equatable {
    /// Something that happened in a step.
    package struct Event: Sendable, Equatable {
        /// How a diagram shows an event; later versions may add kinds.
        package struct Kind: Sendable, Equatable {
            /// A logged event, or an access to shared state.
            package static let event = Kind(name: "event")
            /// A spawned task's beginning.
            package static let start = Kind(name: "start")
            /// A spawned task's end.
            package static let end = Kind(name: "end")
            /// The first failure.
            package static let failure = Kind(name: "failure")

            let name: String
        }

        /// The task that caused it: the name of a spawned task, of its child, of a queue or a thread, or `task N`.
        package let task: String
        /// The event in words.
        package let text: String
        /// The kind of event.
        package let kind: Kind
    }

    /// A wait that no event ends.
    enum Wait: Sendable, Equatable {
        case yield
        case sleep
    }

    /// One step: a task ran until it suspended or ended, a queue ran a block, a thread ran to its next interleaving point,
    /// or time moved on.
    package struct Step: Sendable, Equatable {
        /// The step's number, from 1.
        package let number: Int
        /// The task that ran: the name of a spawned task, of its child, of a queue or a thread, or `task N`; empty if time moved
        /// on.
        package let task: String
        /// Where it ran: the name of an actor's executor or of a queue, or `pool`; empty if time moved on.
        package let place: String
        /// The time at the end of the step.
        package let time: Duration
        /// The tasks that could have run; an empty name means that time could have moved.
        package let candidates: [String]
        /// The picked candidate, counted from 0; candidate 0 needs no switch, or has waited the longest.
        package let pick: Int
        /// The task of candidate 0, if another one was picked.
        package let passedOver: String?
        /// The events while it ran.
        package internal(set) var events: [Event] = []

        /// Whether time moved on.
        package var isTime: Bool { task.isEmpty }
    }

    /// The names of tasks and queues, in the order in which they were given.
    ///
    /// An unnamed task has its creator's name with a number: `Anna.1` is Anna's first child.
    package internal(set) var names: [String] = []
    /// The names that the explorer gave.
    var children: Set<String> = []
    /// The steps, in order.
    package internal(set) var steps: [Step] = []
    /// For each step the functions in which its task continued, as addresses, the innermost first; empty: unknown.
    var functions: [[UInt]] = []
    /// For each step the wait that it ends; `nil`: another one, or none.
    var waits: [Wait?] = []
    /// For each step the number of its lane, which distinguishes actors of one type.
    var lanes: [Int] = []
    /// The first timer that fired while work could run, and the first job that overtook another, as sentences; `nil`: none did.
    var earlyTimer: String?
    var overtaking: String?
}

/// Collects a trace while an execution runs.
struct Recorder: Sendable {
    private(set) var trace = Trace()
    private var waits: [String: Trace.Wait] = [:]

    mutating func name(_ name: String) {
        if !name.isEmpty, !trace.names.contains(name) { trace.names.append(name) }
    }

    /// Returns the name, with a number if it is taken: a diagram would merge two equal names into one column.
    func unused(_ name: String) -> String {
        guard trace.names.contains(name) else { return name }
        var number = 2
        while trace.names.contains("\(name) (\(number))") { number += 1 }
        return "\(name) (\(number))"
    }

    /// Returns a name for the next child of a task.
    mutating func childName(of parent: String) -> String {
        var number = 1
        while trace.names.contains("\(parent).\(number)") { number += 1 }
        trace.children.insert("\(parent).\(number)")
        return "\(parent).\(number)"
    }

    mutating func begin(_ step: Trace.Step, lane: Int) {
        trace.steps.append(step)
        trace.lanes.append(lane)
        trace.functions.append([])
        trace.waits.append(waits.removeValue(forKey: step.task))
    }

    mutating func note(_ wait: Trace.Wait, of task: String) { waits[task] = wait }

    /// Records where the task of the last step continues.
    mutating func note(functions: [UInt]) {
        trace.functions[trace.functions.count - 1] = functions
    }

    mutating func noteEarly(timer: String, before task: String, at step: Int) {
        guard trace.earlyTimer == nil else { return }
        trace.earlyTimer =
            "At step \(step) the timer of '\(timer)' fired although '\(task)' could run: 'time: .anytime' allows that."
    }

    mutating func noteOvertaking(_ task: String, of earlier: String, on actor: String, at step: Int) {
        guard trace.overtaking == nil else { return }
        trace.overtaking =
            "At step \(step) '\(task)' overtook '\(earlier)', which had reached '\(actor)' before: 'ordering: .any' allows that, and"
            + " no actor with the runtime's own queue does it."
    }

    mutating func log(_ text: String, by task: String, kind: Trace.Event.Kind) {
        guard !trace.steps.isEmpty else { return }
        trace.steps[trace.steps.count - 1].events.append(Trace.Event(task: task, text: text, kind: kind))
    }

    /// Describes a value for an event: an optional without its wrapping, a function as "ƒ".
    static func brief(_ value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .optional else {
            // Swift describes every function like this, and a value may contain many.
            return String(describing: value).replacing("(Function)", with: "ƒ")
        }
        return mirror.children.first.map { brief($0.value) } ?? "nil"
    }
}
