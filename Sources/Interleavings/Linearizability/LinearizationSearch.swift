/// Searches for an order in which the operations can have taken effect, each between its call and its return.
///
/// A depth-first search with backtracking. It remembers the situations that led nowhere, and does not try another order of
/// the same operations that ends in the same state.
///
/// Source: Wing, Gong, "Testing and Verifying Concurrent Objects", JPDC 17, 1993; Lowe, "Testing for Linearizability",
/// Concurrency and Computation 29(4), 2017 (the memory, and taking effect no sooner than a return needs it).
struct LinearizationSearch<Slots: SlotSet> {
    /// Appends the numbers of the states that a call may lead to from a state.
    typealias Successors = (_ call: Int, _ state: Int, _ result: inout [Int]) -> Void

    /// Everything that the rest of a search depends on.
    private struct Situation: Hashable {
        /// The next return whose operation has not taken effect.
        var position: Int
        /// The calls, of those open at that return, that have taken effect.
        var effective: Slots
        var state: Int
    }

    /// A situation on the current path, and what was tried from it.
    private struct Attempt {
        let situation: Situation
        let step: DeadEnd.Step
        /// How many returned operations took effect on the path.
        let explained: Int
        /// The next candidate.
        var next = 0
        /// The candidate tried last; its states that haven't been tried are in `states`, from `base` on.
        var trying = 0
        let base: Int
    }

    private let calls: [CallLog.Call]
    private let overlaps: Overlaps
    private let stepCost: Int

    private var path: [Attempt] = []
    private var states: [Int] = []
    private var dead: Set<Situation> = []
    private var furthest = DeadEnd(steps: [], position: 0)
    private var mostExplained = -1
    private var steps = 0

    init(_ log: CallLog, _ overlaps: Overlaps) {
        calls = log.calls
        self.overlaps = overlaps
        stepCost = Slots.words(for: overlaps.slotCount)
    }

    mutating func run(stepLimit: Int, _ successors: Successors) -> LinearizationEnding {
        if overlaps.returns.isEmpty { return .order }
        let start = Situation(position: 0, effective: Slots(slots: overlaps.slotCount), state: 0)
        path.append(Attempt(situation: start, step: DeadEnd.Step(call: -1, state: 0), explained: 0, base: 0))
        while let top = path.indices.last {
            if states.count > path[top].base {
                if enter(states.removeLast(), from: top) { return .order }
            } else if path[top].next < overlaps.candidateCount(at: path[top].situation.position) {
                guard steps < stepLimit else { return .undecided }
                tryNext(from: top, successors)
            } else {
                leave(path.removeLast())
            }
        }
        return .deadEnd(furthest)
    }

    /// Gets the next candidate's states from the specification.
    private mutating func tryNext(from top: Int, _ successors: Successors) {
        let situation = path[top].situation
        let call = overlaps.candidate(path[top].next, at: situation.position)
        path[top].next += 1
        guard !situation.effective.contains(overlaps.slots[call]) else { return }
        path[top].trying = call
        successors(call, situation.state, &states)
        steps += stepCost * max(1, states.count - path[top].base)
    }

    /// Enters a state that the tried operation leads to; returns whether all returns are explained.
    private mutating func enter(_ state: Int, from top: Int) -> Bool {
        let call = path[top].trying
        var situation = path[top].situation
        // An unfinished operation that changes nothing need not take effect.
        if !calls[call].hasReturned, state == situation.state { return false }
        situation.state = state
        situation.effective.insert(overlaps.slots[call])
        while situation.position < overlaps.returns.count {
            let slot = overlaps.slots[overlaps.returns[situation.position]]
            guard situation.effective.contains(slot) else { break }
            situation.effective.remove(slot)
            situation.position += 1
        }
        if situation.position == overlaps.returns.count { return true }
        guard dead.isEmpty || !dead.contains(situation) else { return false }
        let explained = path[top].explained + (calls[call].hasReturned ? 1 : 0)
        path.append(
            Attempt(
                situation: situation, step: DeadEnd.Step(call: call, state: state), explained: explained,
                base: states.count))
        return false
    }

    /// Remembers a situation that led nowhere, and the path to it if no other explained more.
    private mutating func leave(_ attempt: Attempt) {
        dead.insert(attempt.situation)
        let position = attempt.situation.position
        let length = path.count
        // If two paths explain equally much, the shorter one needs fewer unfinished operations.
        if (position, attempt.explained, -length) > (furthest.position, mostExplained, -furthest.steps.count) {
            let steps = path.dropFirst().map(\.step) + (length == 0 ? [] : [attempt.step])
            furthest = DeadEnd(steps: steps, position: position)
            mostExplained = attempt.explained
        }
    }
}

/// How a search for an order ended.
@usableFromInline
enum LinearizationEnding: Sendable {
    /// There is an order.
    case order
    /// There is no order.
    case deadEnd(DeadEnd)
    /// The search reached its step limit first.
    case undecided
}

/// The order that gets furthest, if no order explains all returns.
@usableFromInline
struct DeadEnd: Sendable {
    /// An operation that takes effect, and the number of the state that it leads to.
    struct Step: Sendable {
        let call: Int
        let state: Int
    }

    let steps: [Step]
    /// The return that can't be explained, by its place in ``Overlaps/returns``.
    ///
    /// No order explains more returns than those before it, so later calls do not matter.
    let position: Int
}
