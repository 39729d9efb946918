import AccessTokens

/// The services that a program keeps, in the order of their eviction: a pure value behind the one lock of ``TokenServices``.
///
/// It knows places, not keys, so one copy of its code serves every type of key. It never creates a service, calls one or drops
/// the last reference to one: it returns removed services, to be released outside the lock. Only this file writes its state.
@usableFromInline
struct ServiceShelf: Sendable {
    @usableFromInline typealias Service = any AnyObject & Sendable

    /// The outcome of looking up a place.
    @usableFromInline
    enum Entry {
        case found(Service)
        /// The place has no service, or one that is being deallocated: the caller creates one with this stamp, and inserts it.
        case vacant(place: Int, stamp: Int)
    }

    /// The place of a key without a service.
    @usableFromInline static let noPlace = -1

    /// How a place holds its service.
    private enum Hold: Sendable {
        /// The place isn't in use.
        case free
        /// Kept, regardless of the limit, because something would be lost with it. It becomes idle (→ `idle`) after an event, or
        /// at the given time.
        case busy(Service, until: Duration?)
        /// Kept, in the order of use, until it has work (→ `busy`), or is the least recently used of too many (→ `released`).
        case idle(Service)
        /// Released, but perhaps still in use elsewhere: then it can be found again (→ `idle`), or has work (→ `busy`). When it
        /// is deallocated, its place is free again.
        case released(WeakReference<Service>)
    }

    private struct Slot: Sendable {
        /// Identifies the service: reports about an earlier service of this place are ignored.
        var stamp = none
        var hold = Hold.free
        /// How many callers are creating a service for it.
        var makers = 0
        /// The neighbours among the idle services; `none` at the ends.
        var newer = none, older = none
    }

    /// The time at which a busy service becomes idle unless it reports something else.
    private typealias Pause = (place: Int, stamp: Int, end: Duration)

    /// How many idle services are kept.
    private let limit: Int
    private var slots: ContiguousArray<Slot> = []
    /// The places that are not in use.
    private var free: [Int] = []
    private var newest = none, oldest = none
    private var pauses = LimitHeap<Pause>()
    /// How many kept services are idle, and how many are not.
    private(set) var idleCount = 0, busyCount = 0
    /// How many services are released but not deallocated.
    private(set) var releasedCount = 0
    private var stamps = 0
    /// The last stamp before the latest change that had to reach all services.
    private var lastTurn = 0
    /// How many sign-outs are running; until they end no service is released, so that each sign-out finds every service.
    private var holds = 0

    init(keepingIdle limit: Int) {
        self.limit = max(limit, 0)
    }
}

/// No neighbour.
private let none = -1

extension ServiceShelf {
    // MARK: Callers

    /// Returns the service of a place if it is kept; it becomes the most recently used one.
    @usableFromInline
    mutating func keptService(at place: Int) -> Service? {
        switch slots[place].hold {
        case .busy(let service, _): return service
        case .idle(let service):
            if newest != place {
                unlink(place)
                link(place, asNewest: true)
            }
            return service
        case .released, .free: return nil
        }
    }

    /// Returns the service of a place, kept or still in use elsewhere.
    ///
    /// - Returns: Also a service to release if there is now one too many.
    private mutating func find(at place: Int) -> (service: Service, released: Service?)? {
        if let service = keptService(at: place) { return (service, nil) }
        guard let service = service(at: place) else { return nil }
        take(place)
        keepIdle(service, at: place, asNewest: true)
        return (service, releaseOldest())
    }

    /// Returns a place's service, or the place for a service that the caller creates and passes to ``insert(_:stamp:at:now:)``.
    ///
    /// - Parameter place: The key's place; ``noPlace`` is replaced by a free one.
    /// - Returns: Also a service to release if there is now one too many.
    @usableFromInline
    mutating func enter(_ place: inout Int) -> (entry: Entry, released: Service?) {
        if place == Self.noPlace {
            place = free.popLast() ?? slots.count
            if place == slots.count { slots.append(Slot()) }
        } else if let (service, released) = find(at: place) {
            return (.found(service), released)
        }
        slots[place].makers += 1
        stamps += 1
        return (.vacant(place: place, stamp: stamps), nil)
    }

    /// Whether a service is being made for a place.
    func isReserved(_ place: Int) -> Bool { slots[place].makers > 0 }

    /// Inserts a new service; returns the one to use, since another caller may have been faster, and the services to release.
    ///
    /// - Parameter stamp: The stamp with which the service was created. If ``turn()`` was called since, the service has missed a
    ///   change: then the returned service is `nil`, and the caller creates another with the new stamp.
    @usableFromInline
    mutating func insert(
        _ made: Service, stamp: inout Int, at place: Int, now: Duration
    ) -> (service: Service?, released: [Service]) {
        var released = elapse(to: now)
        if let (service, oldest) = find(at: place) {
            slots[place].makers -= 1
            if let oldest { released.append(oldest) }
            return (service, released)
        }
        guard stamp > lastTurn else {
            stamps += 1
            stamp = stamps
            return (nil, released)
        }
        slots[place].makers -= 1
        take(place)
        slots[place].stamp = stamp
        keepIdle(made, at: place, asNewest: true)
        if let oldest = releaseOldest() { released.append(oldest) }
        return (made, released)
    }

    // MARK: Services

    /// Notes from when a service can be released without a loss, as it reported.
    ///
    /// - Parameter end: When it becomes idle if nothing else happens; `nil`: not before its next report.
    /// - Returns: The services to release.
    @usableFromInline
    mutating func changed(stamp: Int, at place: Int, idleFrom end: Duration?, at now: Duration) -> [Service] {
        var released = elapse(to: now)
        guard slots[place].stamp == stamp, let service = service(at: place) else { return released }
        guard let end, end <= now else {
            take(place)
            slots[place].hold = .busy(service, until: end)
            busyCount += 1
            if let end { pause(place, until: end) }
            return released
        }
        if case .idle = slots[place].hold { return released }
        take(place)
        keepIdle(service, at: place, asNewest: true)
        if let oldest = releaseOldest() { released.append(oldest) }
        return released
    }

    /// Removes a service that was deallocated.
    ///
    /// Returns whether its place is free: another service may have taken it, or is being created for it.
    @usableFromInline
    mutating func ended(stamp: Int, at place: Int) -> Bool {
        guard slots[place].stamp == stamp else { return false }
        take(place)
        (slots[place].stamp, slots[place].hold) = (none, .free)
        guard !isReserved(place) else { return false }
        free.append(place)
        return true
    }

    /// Moves services whose pauses are over to the idle ones; returns the services to release.
    mutating func elapse(to now: Duration) -> [Service] {
        var released: [Service] = []
        while let pause = pauses.removeEarliest(until: now) {
            guard isPaused(pause), case .busy(let service, _) = slots[pause.place].hold else { continue }
            take(pause.place)
            // It was last used before the pause.
            keepIdle(service, at: pause.place, asNewest: false)
            if let oldest = releaseOldest() { released.append(oldest) }
        }
        return released
    }

    // MARK: All keys

    /// Starts a change that must reach all services; those being created now will be created again.
    mutating func turn() {
        lastTurn = stamps
    }

    /// Begins a sign-out: until ``release()`` no service is released, so that a service created and signed in meanwhile is found.
    mutating func hold() {
        holds += 1
    }

    /// Ends a sign-out; returns the services to release.
    mutating func release() -> [Service] {
        holds -= 1
        var released: [Service] = []
        while let service = releaseOldest() { released.append(service) }
        return released
    }

    /// The service of a place, if it still exists.
    func service(at place: Int) -> Service? {
        switch slots[place].hold {
        case .busy(let service, _), .idle(let service): service
        case .released(let reference): reference.object
        case .free: nil
        }
    }

    // MARK: The order of use

    /// Removes a place's service from the counts.
    private mutating func take(_ place: Int) {
        switch slots[place].hold {
        case .busy: busyCount -= 1
        case .idle:
            idleCount -= 1
            unlink(place)
        case .released: releasedCount -= 1
        case .free: break
        }
    }

    private mutating func keepIdle(_ service: Service, at place: Int, asNewest isNewest: Bool) {
        slots[place].hold = .idle(service)
        idleCount += 1
        link(place, asNewest: isNewest)
    }

    /// Releases the least recently used service, if there is one too many.
    private mutating func releaseOldest() -> Service? {
        guard holds == 0, idleCount > limit, case .idle(let service) = slots[oldest].hold else { return nil }
        let place = oldest
        take(place)
        slots[place].hold = .released(WeakReference(object: service))
        releasedCount += 1
        return service
    }

    private mutating func link(_ place: Int, asNewest isNewest: Bool) {
        slots[place].newer = isNewest ? none : oldest
        slots[place].older = isNewest ? newest : none
        if newest == none {
            (newest, oldest) = (place, place)
        } else if isNewest {
            slots[newest].newer = place
            newest = place
        } else {
            slots[oldest].older = place
            oldest = place
        }
    }

    private mutating func unlink(_ place: Int) {
        let (newer, older) = (slots[place].newer, slots[place].older)
        if newer == none { newest = older } else { slots[newer].older = older }
        if older == none { oldest = newer } else { slots[older].newer = newer }
    }

    // MARK: Pauses

    private mutating func pause(_ place: Int, until end: Duration) {
        pauses.insert((place, slots[place].stamp, end), at: end)
        // Pauses that were cut short stay in the heap until it has more than twice as many entries as there are busy services.
        if pauses.count > 2 * busyCount + 16 { pauses.purge { [self] in !isPaused($0) } }
    }

    /// Whether a service still waits for exactly this pause.
    private func isPaused(_ pause: Pause) -> Bool {
        let slot = slots[pause.place]
        guard slot.stamp == pause.stamp, case .busy(_, until: pause.end) = slot.hold else { return false }
        return true
    }
}

/// A reference that keeps nothing alive.
@usableFromInline
struct WeakReference<Object: AnyObject & Sendable>: Sendable {
    @usableFromInline weak let object: Object?

    @usableFromInline
    init(object: Object) {
        self.object = object
    }
}
