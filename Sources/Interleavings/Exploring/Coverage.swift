import TokenServiceConcurrency

/// Which orders an exploration tried: all, all within its bounds, or not all, and why.
package struct Coverage: Sendable, Hashable, Described {
    /// A configured limit that excluded orders; later versions may add more.
    package struct Bound: Sendable, Hashable, CustomStringConvertible {
        /// Schedules with more preemptions were left out.
        package static func preemptions(_ most: Int) -> Bound {
            Bound(description: "at most \(most) preemption\(most == 1 ? "" : "s")")
        }
        /// Schedules with more delays were left out.
        package static func delays(_ most: Int) -> Bound { Bound(description: "at most \(most) delay\(most == 1 ? "" : "s")") }
        /// Under ``TimeModel/whenIdle``: a timer was pending while work could run, and orders in which it fires first were left
        /// out.
        package static let timeWhenIdle = Bound(description: "the time model whenIdle")

        /// The bound's description.
        package let description: String
    }

    /// A reason why orders within the bounds are missing; later versions may add more.
    package struct Gap: Sendable, Hashable, CustomStringConvertible {
        /// The strategy only tries a sample: it isn't ``Strategy/exhaustive(preemptions:delays:limit:)``.
        package static let sample = Gap(description: "the schedules are a sample")
        /// The exploration reached its largest number of schedules.
        package static let scheduleLimit = Gap(description: "the limit of schedules was reached")
        /// A default actor ran: calls that queue for one run in one step, in the order of their arrival.
        ///
        /// In a program that links `InterleavingsEverything` it only appears where a function of the standard library comes back
        /// to an actor by itself, such as `next()` of a task group.
        package static let defaultActor = Gap(
            description: "calls that queue for a default actor run in one step, in the order of their arrival: link"
                + " InterleavingsEverything, or give the actor an executor from simulation.actorExecutor")
        /// Calls that came back to a default actor inside one of the runtime's functions, such as `withTaskCancellationHandler`
        /// or a group's end, were not steps of their own.
        package static let returns = Gap(
            description:
                "calls that came back to a default actor at the end of a group or a handler ran in one step, in the order"
                + " in which they came")

        /// At the step limit of a schedule, a task was still passed over by others, and was then picked.
        package static let patience = Gap(
            description: "a task was passed over up to the step limit and then ran: raise 'stepLimit', or wait without spinning")

        /// A step slept in the kernel, and when it woke it ran beside another one, up to its next point.
        package static let sleepingStep = Gap(
            description:
                "a step slept until another released what it waited for, and then ran in parallel with it: use InterleavedLock in your code"
        )

        /// A failed schedule left the explorer's control and can't be repeated.
        package static let escape = Gap(description: "a schedule escaped: see its failure")

        /// The missing orders, and how to include them.
        package let description: String
    }

    /// The steps whose orders count.
    package let granularity: Granularity
    /// The bounds that excluded orders; empty: none did.
    package internal(set) var bounds: [Bound] = []
    /// Why orders within the bounds are missing; empty: none is.
    package internal(set) var gaps: [Gap] = []

    /// Whether all orders ran, without any bound.
    package var isAll: Bool { bounds.isEmpty && gaps.isEmpty }
    /// Whether all orders within the bounds ran.
    package var isAllWithinBounds: Bool { gaps.isEmpty }

    /// The orders that ran, in words.
    package var text: String {
        let steps = granularity == .jobs ? "jobs" : "jobs and marked accesses"
        let within = bounds.isEmpty ? "" : " with " + bounds.map(\.description).joined(separator: " and ")
        let orders = "all orders of \(steps)\(within)"
        return gaps.isEmpty ? orders : "not \(orders): " + gaps.map(\.description).joined(separator: "; ")
    }

    init(granularity: Granularity) {
        self.granularity = granularity
    }

    mutating func formUnion(_ other: Coverage) {
        bounds += other.bounds.filter { !bounds.contains($0) }
        gaps += other.gaps.filter { !gaps.contains($0) }
    }

    mutating func add(_ omissions: Omissions) {
        if omissions.contains(.earlyTimer) { bounds.append(.timeWhenIdle) }
        if omissions.contains(.queuedCalls) { gaps.append(.defaultActor) }
        if omissions.contains(.queuedReturns) { gaps.append(.returns) }
        if omissions.contains(.starvation) { gaps.append(.patience) }
        if omissions.contains(.sleepingStep) { gaps.append(.sleepingStep) }
        if omissions.contains(.escape) { gaps.append(.escape) }
    }
}

/// The kinds of order that an execution couldn't have, or that it gave up.
struct Omissions: OptionSet {
    let rawValue: Int

    /// A timer was pending while other work could run, when time doesn't move.
    static let earlyTimer = Omissions(rawValue: 1)
    /// A default actor's queue was drained, and its calls were not steps of their own.
    static let queuedCalls = Omissions(rawValue: 2)
    /// The same for an actor whose other calls are steps.
    static let queuedReturns = Omissions(rawValue: 32)
    /// A task was passed over until the step limit, and then picked.
    static let starvation = Omissions(rawValue: 4)
    /// A step slept in the kernel, and woke while another one ran.
    static let sleepingStep = Omissions(rawValue: 16)
    /// The execution left the explorer's control.
    static let escape = Omissions(rawValue: 8)
}
