@testable import AccessTokens
@testable import AccessTokensKeys

/// A table of keys, its users, and a naive model of what it should do.
///
/// A service is a stand-in that reports its end, so the living stand-ins show the table's contents.
final class KeyWorld {
    final class Doll: Sendable {
        let key: Int, place: Int, stamp: Int

        init(_ key: Int, _ place: Int, _ stamp: Int) {
            self.key = key
            self.place = place
            self.stamp = stamp
        }
    }

    /// A reference that keeps no doll alive.
    private struct WeakDoll {
        weak let object: Doll?
    }

    /// A stand-in that was deallocated.
    private struct End {
        let place: Int, stamp: Int
    }

    /// An event at a key.
    enum Event: Hashable {
        /// A caller asks for the service and keeps the result, or begins to create one.
        case ask(Int)
        /// A service that was being created is inserted.
        case insert(Int)
        /// The caller releases its service.
        case drop(Int)
        /// The service becomes busy; becomes idle; pauses after a failure.
        case work(Int), rest(Int), pause(Int)
        /// The table is told that a service was deallocated.
        case learn(Int)
        /// A sign-out begins; it ends.
        case hold, release
        /// A change must reach all services.
        case turn
        /// Time advances by more than a pause.
        case wait
    }

    /// Where a key's service should be.
    enum Place: Hashable { case none, busy, paused(until: Int), idle, released }

    private var table: KeyTable<Int>
    private let limit: Int, keys: Range<Int>
    private var now = 0
    /// The services held outside the table.
    private var holders: [Doll?]
    private var making: [[Doll]]
    /// Deallocations that haven't been reported to the table.
    private var endings: [[End]]
    // The naive table.
    private var places: [Place]
    private var alive: [WeakDoll?]
    private var order: [Int] = []
    private var isHeld = false
    /// The highest stamp so far, and the stamp of the last change that had to reach all services.
    private var lastStamp = 0, lastTurn = 0
    /// The keys of the pauses that the table may still remember, cut short or not.
    private var paused: Set<Int> = []

    init(keys: Int, limit: Int) {
        self.keys = 0..<keys
        self.limit = limit
        table = KeyTable(keepingIdle: limit)
        holders = Array(repeating: nil, count: keys)
        making = Array(repeating: [], count: keys)
        endings = Array(repeating: [], count: keys)
        places = Array(repeating: .none, count: keys)
        alive = Array(repeating: nil, count: keys)
    }

    var events: [Event] {
        keys.flatMap { key -> [Event] in
            var events: [Event] = []
            if holders[key] == nil, making[key].count + endings[key].count < (key == 0 ? 2 : 1) { events.append(.ask(key)) }
            if !making[key].isEmpty { events.append(.insert(key)) }
            if holders[key] != nil { events.append(.drop(key)) }
            if alive[key]?.object != nil { events += [.work(key), .rest(key), .pause(key)] }
            if !endings[key].isEmpty { events.append(.learn(key)) }
            return events
        } + (paused.isEmpty ? [] : [.wait]) + [isHeld ? .release : .hold]
            // The effect is the same for every limit.
            + (limit == 0 && making[0].contains { $0.stamp > lastTurn } ? [.turn] : [])
    }

    /// Performs an event in the table and in the model; returns the violation, if any.
    func perform(_ event: Event) -> String? {
        let before = alive.map { doll in doll?.object.map { End(place: $0.place, stamp: $0.stamp) } }
        let problem: String? =
            switch event {
            case .ask(let key): ask(key)
            case .insert(let key): insert(key)
            case .drop(let key): drop(key)
            case .work(let key): change(key, to: .busy)
            case .rest(let key): change(key, to: .idle)
            case .pause(let key): change(key, to: .paused(until: now + 10 + key))
            case .learn(let key): learn(key)
            case .hold: hold()
            case .release: release()
            case .wait: wait()
            case .turn: turn()
            }
        for key in keys {
            if let end = before[key], alive[key]?.object?.stamp != end.stamp { endings[key].append(end) }
        }
        return problem ?? violation
    }

    /// The violation, if the living or counted services differ from the model's.
    private var violation: String? {
        for key in keys {
            let isKept = [.none, .released].contains(places[key]) == false
            let isAlive = alive[key]?.object != nil
            if isKept != isAlive, holders[key] == nil {
                return "key \(key) is \(places[key]), and its service \(isAlive ? "lives" : "has ended")"
            }
            if !isAlive, places[key] == .released { places[key] = .none }
        }
        let shelf = table.shelf
        if shelf.idleCount != order.count || !isHeld && shelf.idleCount > limit {
            return "\(shelf.idleCount) are idle, not \(order)"
        }
        if shelf.busyCount != places.count(where: { $0.isBusy }) { return "\(shelf.busyCount) are busy" }
        let released =
            places.count { $0 == .released }
            + keys.count { key in
                places[key] == .none && endings[key].last.map { $0.stamp == lastStamps[key] } ?? false
            }
        return shelf.releasedCount == released ? nil : "\(shelf.releasedCount) are released, not \(released)"
    }

    private var lastStamps: [Int: Int] = [:]

    // MARK: Events

    private func ask(_ key: Int) -> String? {
        let entry = table.enter(key).entry
        guard places[key] != .none else {
            guard case .vacant(let place, let stamp) = entry else { return "an ended service was found" }
            making[key].append(Doll(key, place, stamp))
            lastStamp = stamp
            return nil
        }
        guard case .found(let found) = entry, found === alive[key]?.object else { return "key \(key)'s service was not found" }
        holders[key] = alive[key]?.object
        if !places[key].isBusy { use(key) }
        return nil
    }

    private func insert(_ key: Int) -> String? {
        let doll = making[key].removeFirst()
        var stamp = doll.stamp
        let used = table.shelf.insert(doll, stamp: &stamp, at: doll.place, now: .seconds(now)).service
        elapse()
        if places[key] == .none, doll.stamp <= lastTurn {
            making[key].append(Doll(key, doll.place, stamp))
            lastStamp = stamp
            return used == nil && stamp > lastTurn ? nil : "a service was not told what all were told"
        }
        if places[key] == .none {
            alive[key] = WeakDoll(object: doll)
            lastStamps[key] = doll.stamp
        }
        guard used === alive[key]?.object else { return "key \(key) has two services" }
        holders[key] = alive[key]?.object
        if !places[key].isBusy { use(key) }
        return nil
    }

    private func drop(_ key: Int) -> String? {
        holders[key] = nil
        return nil
    }

    private func change(_ key: Int, to place: Place) -> String? {
        guard let doll = alive[key]?.object else { return nil }
        if case .paused = place { paused.insert(key) }
        let end: Duration? =
            switch place {
            case .paused(let end): .seconds(end)
            case .idle: .seconds(now)
            default: nil
            }
        _ = table.shelf.changed(stamp: doll.stamp, at: doll.place, idleFrom: end, at: .seconds(now))
        elapse()
        if place != .idle {
            order.removeAll { $0 == key }
            places[key] = place
        } else if places[key] != .idle {
            use(key)
        }
        return nil
    }

    private func learn(_ key: Int) -> String? {
        let end = endings[key].removeFirst()
        _ = table.ended(key, at: end.place, stamp: end.stamp)
        return nil
    }

    private func hold() -> String? {
        isHeld = true
        let seen = table.hold().keys, there = Set(keys.filter { places[$0] != .none || !making[$0].isEmpty })
        return seen == there ? nil : "a sign-out sees \(seen), not \(there)"
    }

    private func turn() -> String? {
        lastTurn = lastStamp
        let seen = table.turn().keys, there = Set(keys.filter { places[$0] != .none || !making[$0].isEmpty })
        return seen == there ? nil : "\(seen) are told, not \(there)"
    }

    private func release() -> String? {
        isHeld = false
        _ = table.shelf.release()
        releaseOldest()
        return nil
    }

    private func wait() -> String? {
        now += 10 + keys.count
        paused = []
        _ = table.shelf.elapse(to: .seconds(now))
        elapse()
        return nil
    }

    // MARK: The naive table

    /// The most recently used is last.
    private func use(_ key: Int) {
        order.removeAll { $0 == key }
        order.append(key)
        places[key] = .idle
        releaseOldest()
    }

    private func elapse() {
        // The earliest pause ends first.
        let ended = keys.compactMap { key -> (Int, Int)? in
            if case .paused(let end) = places[key], end <= now { (end, key) } else { nil }
        }
        for (_, key) in ended.sorted(by: <) {
            places[key] = .idle
            order.insert(key, at: 0)
            releaseOldest()
        }
    }

    private func releaseOldest() {
        while !isHeld, order.count > limit { places[order.removeFirst()] = .released }
    }

    /// Worlds with equal keys behave alike from now on.
    var key: [Int] {
        [isHeld ? 1 : 0]
            + keys.flatMap { key -> [Int] in
                let place =
                    switch places[key] {
                    case .none: 0
                    case .busy: 1
                    case .paused(let end): 10 + end - now
                    case .idle: 2
                    case .released: 3
                    }
                let isLate = endings[key].map { $0.stamp == lastStamps[key] ? 1 : 0 }
                let late = making[key].count { $0.stamp <= lastTurn }
                return [place, holders[key] == nil ? 0 : 1, making[key].count, late, order.firstIndex(of: key) ?? -1]
                    + isLate + [paused.contains(key) ? -8 : -9]
            }
    }
}

extension KeyWorld.Place {
    fileprivate var isBusy: Bool {
        switch self {
        case .busy, .paused: true
        default: false
        }
    }
}
