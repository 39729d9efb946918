/// What is known of the passing schedule that differs from a failing one in the fewest choices.
enum NearestPass: Sendable {
    /// None was looked for: no page shows it, or the failing schedule can't be repeated.
    case unsought
    /// It, and what ran when.
    case found(Schedule, Trace)
    /// None of those tried passed.
    case none(tried: Int)
}

/// Looking for what a failing schedule is compared with.
extension Exploration {
    private struct Change {
        let place: Int
        let pick: Int
    }

    /// The most executions and steps that the search may take.
    private static let (mostExecutions, mostSteps) = (500, 200_000)

    /// Returns the first schedule that passes: of all with one choice changed, then of all with two.
    mutating func nearestPass(to failing: Execution.Outcome) -> NearestPass {
        guard settings.seeksNearestPass, failing.isRepeatable, case .replay(let replay) = failing.chooser else {
            return .unsought
        }
        let changes = Self.changes(of: failing.choices, counts: replay.counts)
        let pairs = changes.indices.lazy.flatMap { later in
            changes[..<later].lazy.filter { $0.place != changes[later].place }.map { [$0, changes[later]] }
        }
        var (tried, steps) = (0, 0)
        for attempt in changes.map({ [$0] }) + pairs.prefix(Self.mostExecutions) {
            guard tried < Self.mostExecutions, steps < Self.mostSteps else { break }
            var choices = failing.choices
            for change in attempt { choices[change.place] = change.pick }
            let outcome = execute(.replay(Replay(choices: choices)), records: true)
            guard outcome.isRepeatable else { break }
            // The choices that the execution made: after a change, fewer candidates may be left.
            if outcome.error == nil { return .found(Schedule(choices: outcome.choices), outcome.trace) }
            tried += 1
            steps += outcome.steps
        }
        return .none(tried: tried)
    }

    /// Returns the changes of one choice: first those that take back a switch, then those that add or move one; late ones first,
    /// after which most of the execution stays as it was.
    private static func changes(of choices: [Int], counts: [Int]) -> [Change] {
        let places = choices.indices.prefix(counts.count).reversed()
        let back = places.filter { choices[$0] > 0 }.map { Change(place: $0, pick: 0) }
        let others = places.flatMap { place in
            (1..<max(counts[place], 1)).filter { $0 != choices[place] }.map { Change(place: place, pick: $0) }
        }
        return back + others
    }
}
