/// A walk through every state that can be reached, the nearest to the start first: a violation comes with the shortest way to it.
struct Walk {
    private var seen: Set<[Int8]>
    /// Those that are as far from the start as the next one, and those that are an event farther.
    private var near: [World], far: [World] = []
    private(set) var visits = 0

    init(from start: World) {
        seen = [start.key]
        near = [start]
    }

    /// How many states there are, if the walk is over.
    var states: Int { seen.count }

    /// The next state to try events in; yields now and then, so that the other tests get their turn.
    mutating func next() async -> World? {
        if near.isEmpty { swap(&near, &far) }
        guard let world = near.popLast() else { return nil }
        visits += 1
        if visits.isMultiple(of: 32) { await Task.yield() }
        return world
    }

    /// Comes to a state, which is visited later if it is new.
    mutating func reach(_ world: World) {
        if seen.insert(world.key).inserted { far.append(world) }
    }
}
