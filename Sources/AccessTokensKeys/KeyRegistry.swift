public import AccessTokens
public import TokenServiceConcurrency

/// The table of ``TokenServices``, behind a lock; services report to it without keeping it alive.
///
/// The frequent operations are inlinable, so that the program's own module compiles them for its type of key. As generic code
/// they took 70 % of the time needed to create a service.
@usableFromInline
final class KeyRegistry<Key: Hashable & Sendable, Service: AnyObject & Sendable>: Sendable {
    let clock: ServiceClock
    /// Receives the services' events.
    let hub: EventHub<KeyEvent<Key>>
    /// Passes on the events of services that are hidden from the program; `nil`: the hub gets all of them.
    private let announceHidden: (@Sendable (TokenEvent, Key) -> Void)?
    @usableFromInline let table: Lock<KeyTable<Key>>

    init(
        keepingIdle limit: Int, clock: ServiceClock, hub: EventHub<KeyEvent<Key>>,
        announceHidden: (@Sendable (TokenEvent, Key) -> Void)? = nil
    ) {
        self.clock = clock
        self.hub = hub
        self.announceHidden = announceHidden
        table = Lock(KeyTable(keepingIdle: limit))
    }

    /// Changes the table; the caller releases the removed objects after unlocking.
    func withTable<Outcome: Sendable>(_ body: @Sendable (inout KeyTable<Key>) -> Outcome) -> Outcome {
        table.withLock { body(&$0) }
    }

    /// The service of a key if it is kept; used by each hit.
    @inlinable
    func keptService(of key: Key) -> Service? {
        let service = table.withLock { table -> ServiceShelf.Service? in
            guard let place = table.places[key] else { return nil }
            return table.shelf.keptService(at: place)
        }
        return service.map { typed($0) }
    }

    /// The service of a key, if there is one, even if only the program still holds it.
    func service(of key: Key) -> Service? {
        let service = table.withLock { table in table.places[key].flatMap { table.shelf.service(at: $0) } }
        return service.map { typed($0) }
    }

    /// Returns the service of a key; creates it outside the lock if necessary, since that runs the program's own code.
    @inlinable
    func findOrMake(_ key: Key, _ make: (_ tether: ServiceTether, _ stamp: Int) -> Service) -> Service {
        // Evicted services deinit here, after unlocking: their deinit takes this lock.
        let (entry, released) = table.withLock { $0.enter(key) }
        _ = released
        switch entry {
        case .found(let service): return typed(service)
        case .vacant(let place, var stamp):
            // Weak: the table keeps its services. A captured `weak` variable would need another object for each key.
            let registry = WeakReference(object: self)
            while true {
                let made = stamp
                let tether = tether { registry.object?.note($0, of: key, at: place, stamp: made) }
                if let service = insert(make(tether, made), at: place, stamp: &stamp) { return service }
            }
        }
    }

    @usableFromInline
    func tether(_ send: @escaping @Sendable (ServiceReport) -> Void) -> ServiceTether { ServiceTether(use: hub.use, send) }

    @usableFromInline var now: Duration { clock.now() }

    /// See `ServiceShelf.insert(_:stamp:at:now:)`.
    @inlinable
    func insert(_ made: Service, at place: Int, stamp: inout Int) -> Service? {
        let now = now
        let (service, released) = table.withLock { $0.shelf.insert(made, stamp: &stamp, at: place, now: now) }
        _ = released
        return service.map { typed($0) }
    }

    /// Casts a service to this table's type; the shelf only contains services that ``insert(_:at:stamp:)`` accepted, so the cast
    /// is safe.
    ///
    /// The shelf itself knows no types, so one copy of its code serves all tables.
    @inlinable
    func typed(_ service: ServiceShelf.Service) -> Service { unsafe unsafeDowncast(service, to: Service.self) }

    /// Handles a service's report.
    @inlinable
    func note(_ report: ServiceReport, of key: Key, at place: Int, stamp: Int) {
        switch report {
        case .announce(let event): announce(event, of: key)
        case .changed(let start, let now):
            _ = table.withLock { $0.shelf.changed(stamp: stamp, at: place, idleFrom: start, at: now) }
        case .isBehind: break
        case .ended: _ = table.withLock { $0.ended(key, at: place, stamp: stamp) }
        }
    }

    @usableFromInline
    func announce(_ event: TokenEvent, of key: Key) {
        guard let announceHidden else { return hub.send(KeyEvent(key: key, event: event)) }
        announceHidden(event, key)
    }
}

/// Maps keys to their services: a pure value behind the one lock of ``TokenServices``, with the services on a shelf.
@usableFromInline
struct KeyTable<Key: Hashable & Sendable>: Sendable {
    @usableFromInline typealias Service = ServiceShelf.Service

    /// The place of each key's service on the shelf.
    @usableFromInline var places: [Key: Int] = [:]
    @usableFromInline var shelf: ServiceShelf

    init(keepingIdle limit: Int) {
        shelf = ServiceShelf(keepingIdle: limit)
    }

    /// Returns the service of a key, or a place for it.
    ///
    /// - Returns: Also a service to release if there is now one too many.
    @inlinable
    mutating func enter(_ key: Key) -> (entry: ServiceShelf.Entry, released: Service?) {
        shelf.enter(&places[key, default: ServiceShelf.noPlace])
    }

    /// Removes the entry of a service that was deallocated, unless the place is in use again.
    ///
    /// - Returns: The removed entry, to be released outside the lock: releasing a key may run foreign code.
    @inlinable
    mutating func ended(_ key: Key, at place: Int, stamp: Int) -> (key: Key, place: Int)? {
        guard shelf.ended(stamp: stamp, at: place), let index = places.index(forKey: key) else { return nil }
        let entry = places.remove(at: index)
        return (entry.key, entry.value)
    }

    /// All keys with a service, kept or in use elsewhere, and all keys whose service is being created.
    ///
    /// The services are returned only so that none is released under the lock.
    var current: (keys: Set<Key>, services: [Service]) {
        var keys: Set<Key> = [], services: [Service] = []
        for (key, place) in places {
            let service = shelf.service(at: place)
            guard service != nil || shelf.isReserved(place) else { continue }
            keys.insert(key)
            if let service { services.append(service) }
        }
        return (keys, services)
    }

    /// Starts a change that must reach all services.
    ///
    /// - Returns: The keys of all services, including those being created, which will be created again.
    mutating func turn() -> (keys: Set<Key>, services: [Service]) {
        shelf.turn()
        return current
    }

    /// Begins a sign-out: until `shelf.release()` no service is released.
    mutating func hold() -> (keys: Set<Key>, services: [Service]) {
        shelf.hold()
        return current
    }
}
