/// Who ran when, in one execution: what a report's diagram is drawn from.
public struct Trace: Sendable, Equatable {
    /// Something that happened in a step.
    public struct Event: Sendable, Equatable {
        /// What a diagram shows in a way of its own; there may be more in later versions.
        public struct Kind: Sendable, Equatable {
            /// Something that was logged, or an access to what threads share.
            public static let event = Kind(name: "event")
            /// A spawned task's beginning.
            public static let start = Kind(name: "start")
            /// A spawned task's end.
            public static let end = Kind(name: "end")
            /// The first failure.
            public static let failure = Kind(name: "failure")

            let name: String
        }

        /// Whose it is: the name of a spawned task, a queue or a thread, or `task N`.
        public let task: String
        /// What happened.
        public let text: String
        /// What sort of event it is.
        public let kind: Kind
    }

    /// One step: a task ran until it suspended or ended, a queue ran a block, a thread ran to its next interleaving point,
    /// or time moved on.
    public struct Step: Sendable, Equatable {
        /// The step's number, from 1.
        public let number: Int
        /// Who ran: the name of a spawned task, a queue or a thread, or `task N`; empty if time moved on.
        public let task: String
        /// Where it ran: the name of an actor's executor or of a queue, or `pool`; empty if time moved on.
        public let place: String
        /// The time at the end of the step.
        public let time: Duration
        /// How many could have run.
        public let candidates: Int
        /// Which of them was picked, counted from 0: the one that needs no switch, or has waited longest.
        public let pick: Int
        /// Who would have run, had the first been picked; `nil` if it was.
        public let passedOver: String?
        /// What happened while it ran.
        public internal(set) var events: [Event] = []

        /// Whether time moved on.
        public var isTime: Bool { task.isEmpty }
    }

    /// The names that were given to tasks and queues, in that order.
    public internal(set) var names: [String] = []
    /// The steps, in order.
    public internal(set) var steps: [Step] = []
}
