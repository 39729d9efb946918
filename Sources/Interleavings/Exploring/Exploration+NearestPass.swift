import TokenServiceConcurrency

/// The result of the search for the passing schedule that differs from a failing one in the fewest choices.
enum NearestPass: Sendable {
    /// There was no search: no page would show the result, or the failing schedule can't be repeated.
    case unsought
    /// The schedule and its trace.
    case found(Schedule, Trace)
    /// None of those tried passed.
    case none(tried: Int)
}

/// The search for schedules to compare a failing one with.
extension Exploration {
    private struct Change {
        let place: Int
        let pick: Int
    }

    /// The most executions and steps that the search may take.
    private static let (mostExecutions, mostSteps) = (500, 200_000)
    /// How many schedules with one changed choice, and how many unlike the failing one, are run to see which crossings are
    /// harmless.
    private static let (alike, unlike) = (30, 12)

    /// Compares a failing schedule with others that pass.
    ///
    /// - Returns: The first passing schedule with one changed choice, or else with two; and what happens in the failing one, but
    ///   not in that one and in few others.
    mutating func comparison(of failing: Execution.Outcome) -> (nearest: NearestPass, crossing: Crossing?) {
        guard failing.isRepeatable else { return (.unsought, nil) }
        // Skip this for the candidates while a program is being shrunk.
        var suspects = CrossingSuspects(failing.trace, waitsForOutside ? settings.doors : nil)
        guard settings.seeksNearestPass || !suspects.isEmpty else { return (.unsought, nil) }
        // An escape of another failing schedule doesn't matter.
        let (time, didWait) = (settings.time, hasWaited)
        hasWaited = true
        defer {
            use(time)
            hasWaited = didWait
        }
        let nearest = nearestPass(to: failing, &suspects)
        guard !suspects.isEmpty else { return (nearest, nil) }
        addPasses(unlike: failing, to: &suspects)
        if case .found = nearest { return (nearest, suspects.worst) }
        // If all tasks sleep at the same time, only the other model of time may have a passing schedule.
        use(time == .anytime ? .whenIdle : .anytime)
        let again = execute(.replay(Replay(choices: failing.choices)), records: true)
        _ = nearestPass(to: again, &suspects, most: Self.alike)
        addPasses(unlike: failing, to: &suspects)
        return (nearest, suspects.worst)
    }

    /// Searches for the first passing schedule, and continues for a while if there are suspects.
    private mutating func nearestPass(
        to start: Execution.Outcome, _ suspects: inout CrossingSuspects, most: Int = mostExecutions
    ) -> NearestPass {
        guard case .replay(let replay) = start.chooser else { return .unsought }
        let changes = Self.changes(of: start.choices, counts: replay.counts)
        let pairs = changes.indices.lazy.flatMap { later in
            changes[..<later].lazy.filter { $0.place != changes[later].place }.map { [$0, changes[later]] }
        }
        var (tried, steps, nearest) = (0, 0, NearestPass?.none)
        for attempt in changes.map({ [$0] }) + pairs.prefix(most) {
            guard tried < most, steps < Self.mostSteps else { break }
            if nearest != nil, suspects.isEmpty || attempt.count > 1 || tried >= Self.alike { break }
            var choices = start.choices
            for change in attempt { choices[change.place] = change.pick }
            let outcome = execute(.replay(Replay(choices: choices)), records: true)
            guard outcome.isRepeatable else { break }
            tried += 1
            steps += outcome.steps
            guard outcome.error == nil else { continue }
            suspects.add(pass: outcome.trace)
            // Use the execution's own choices: after a change there may be fewer candidates.
            nearest = nearest ?? .found(Schedule(choices: outcome.choices), outcome.trace)
        }
        return nearest ?? .none(tried: tried)
    }

    /// Runs tasks by random priorities, so that a task tends to end before another one begins.
    private mutating func addPasses(unlike failing: Execution.Outcome, to suspects: inout CrossingSuspects) {
        var seeds = SplitMix64(seed: 1)
        for number in 0..<Self.unlike where failing.steps * number < Self.mostSteps {
            let random = SplitMix64(seed: seeds.next())
            let chooser = Priorities(random: random, depth: 1 + number % 2, length: failing.choices.count)
            let outcome = execute(.priorities(chooser), records: true)
            guard outcome.isRepeatable else { return }
            if outcome.error == nil { suspects.add(pass: outcome.trace) }
        }
    }

    /// Returns the changes of one choice: first those that remove a switch, then those that add or move one.
    ///
    /// Among each kind the latest come first, since they leave most of the execution as it was.
    private static func changes(of choices: [Int], counts: [Int]) -> [Change] {
        let places = choices.indices.prefix(counts.count).reversed()
        let back = places.filter { choices[$0] > 0 }.map { Change(place: $0, pick: 0) }
        let others = places.flatMap { place in
            (1..<max(counts[place], 1)).filter { $0 != choices[place] }.map { Change(place: place, pick: $0) }
        }
        return back + others
    }
}
