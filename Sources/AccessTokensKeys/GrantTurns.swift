import TokenServiceConcurrency

/// The order in which keys that share a grant load with it, first come, first served: a pure value behind the grant's lock.
///
/// After unlocking, complete each result that it returns: it belongs to the load whose turn has come.
struct GrantTurns: Sendable {
    private struct Place: Sendable {
        let number: Int
        /// The key that loads.
        let member: Int
        var urgency: Urgency
        /// Complete when its turn has come.
        let start: SingleResult<Void>
        /// When its turn ends although its load hasn't; `nil`: its load hasn't begun.
        var end: Duration?
    }

    /// The places in the line; the first one has its turn.
    private var line: [Place] = []
    private var last = 0

    /// Adds a load to the line.
    mutating func enter(
        at now: Duration, by member: Int, as urgency: Urgency
    ) -> (number: Int, start: SingleResult<Void>, next: SingleResult<Void>?) {
        last += 1
        let place = Place(number: last, member: member, urgency: urgency, start: SingleResult())
        line.append(place)
        // The clock may not have woken the alarm.
        let isOver = line.first?.end.map { $0 <= now } ?? false
        let next = isOver ? end() : line.count == 1 ? place.start : nil
        return (last, place.start, next)
    }

    /// Makes the loads before a waiting one as urgent as it is; returns the keys of those that were less urgent.
    mutating func raise(before number: Int, to urgency: Urgency) -> [Int] {
        let raised = line.indices.filter { line[$0].number < number && line[$0].urgency < urgency }
        for index in raised { line[index].urgency = urgency }
        return raised.map { line[$0].member }
    }

    /// Begins a load whose turn has come; returns `false` if it has lost its turn meanwhile.
    mutating func begin(_ number: Int, until end: Duration) -> Bool {
        guard line.first?.number == number else { return false }
        line[0].end = end
        return true
    }

    /// Removes a load that has ended or has stopped waiting.
    mutating func leave(_ number: Int) -> SingleResult<Void>? {
        guard let index = line.firstIndex(where: { $0.number == number }) else { return nil }
        line.remove(at: index)
        return index == 0 ? line.first?.start : nil
    }

    /// Ends the turn, even if its load continues.
    mutating func end() -> SingleResult<Void>? {
        line.first.flatMap { leave($0.number) }
    }
}
