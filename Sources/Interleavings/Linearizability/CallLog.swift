/// The order in which calls began and ended.
@usableFromInline
struct CallLog: Sendable {
    /// One call; its number in reports is its place in ``CallLog/calls``, counted from 1.
    struct Call: Sendable {
        let caller: String
        let beginning: Int
        /// When the call returned; `.max`: it didn't, and may take effect at any later time, or never.
        var end = Int.max

        var hasReturned: Bool { end != .max }
    }

    /// One call's beginning or end.
    enum Event: Sendable {
        case begins(Int)
        case ends(Int)
    }

    private(set) var calls: [Call] = []
    private(set) var events: [Event] = []

    /// Records that a call began, and returns its place.
    mutating func begin(_ caller: String) -> Int {
        calls.append(Call(caller: caller, beginning: events.count))
        events.append(.begins(calls.count - 1))
        return calls.count - 1
    }

    /// Records that a call ended, and returns `true`, unless it had already ended.
    mutating func end(_ call: Int) -> Bool {
        guard !calls[call].hasReturned else { return false }
        calls[call].end = events.count
        events.append(.ends(call))
        return true
    }

    /// Returns the log up to a moment.
    func prefix(through moment: Int) -> CallLog {
        var log = CallLog()
        for event in events.prefix(moment + 1) {
            switch event {
            case .begins(let call): _ = log.begin(calls[call].caller)
            case .ends(let call): _ = log.end(call)
            }
        }
        return log
    }

    /// Searches for an order of the calls, given the successors: the states that a call may lead to from a state.
    @usableFromInline
    func search(
        stepLimit: Int, _ successors: (_ call: Int, _ state: Int, _ result: inout [Int]) -> Void
    ) -> LinearizationEnding {
        let overlaps = Overlaps(self)
        if overlaps.slotCount <= NarrowSlots.capacity {
            var search = LinearizationSearch<NarrowSlots>(self, overlaps)
            return search.run(stepLimit: stepLimit, successors)
        }
        var search = LinearizationSearch<WideSlots>(self, overlaps)
        return search.run(stepLimit: stepLimit, successors)
    }
}
