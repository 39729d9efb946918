/// A breadth-first walk through every reachable state, so that a violation is reported with the shortest path to it.
struct Walk {
    private var seen: Set<[Int8]>
    /// The states as far from the start as the next one, and those one event farther.
    private var near: [World], far: [World] = []
    private(set) var visits = 0

    init(from start: World) {
        seen = [start.key]
        near = [start]
    }

    /// The number of states, once the walk is over.
    var states: Int { seen.count }

    /// Returns the next state to try events in; yields now and then to let other tests run.
    mutating func next() async -> World? {
        if near.isEmpty { swap(&near, &far) }
        guard let world = near.popLast() else { return nil }
        visits += 1
        if visits.isMultiple(of: 32) { await Task.yield() }
        return world
    }

    /// Adds a state, which is visited later if it is new.
    mutating func reach(_ world: World) {
        if seen.insert(world.key).inserted { far.append(world) }
    }
}
