/// Which key has which service: a pure value behind the one lock of ``TokenServices``, with the services on a shelf.
@usableFromInline
struct KeyTable<Key: Hashable & Sendable, Service: AnyObject & Sendable>: Sendable {
    /// Where on the shelf the key's service is.
    @usableFromInline private(set) var places: [Key: Int] = [:]
    @usableFromInline var shelf: ServiceShelf<Service>
    private var stamps = 0
    /// The keys whose services are being made at this moment, and how often.
    private var making: [Key: Int] = [:]

    init(keepingIdle limit: Int) {
        shelf = ServiceShelf(keepingIdle: limit)
    }

    // MARK: Callers

    /// The service of a key; `nil`: there is none, and the caller makes one, between ``begin(_:)`` and ``insert(_:stamp:for:at:)``.
    ///
    /// - Returns: Also what is over the bound now, to be released.
    mutating func find(_ key: Key) -> (service: Service?, released: Service?) {
        guard let place = places[key] else { return (nil, nil) }
        return shelf.find(at: place)
    }

    /// A caller is about to make a key's service; returns the number that tells it from all others.
    mutating func begin(_ key: Key) -> Int {
        making[key, default: 0] += 1
        stamps += 1
        return stamps
    }

    /// A service has been made; returns the one to use: another caller may have been quicker.
    mutating func insert(_ made: Service, stamp: Int, for key: Key, at now: Duration) -> (service: Service, released: [Service]) {
        making[key] = making[key].flatMap { $0 > 1 ? $0 - 1 : nil }
        let rested = shelf.elapse(to: now)
        let found = find(key)
        if let service = found.service { return (service, rested + [found.released].compactMap { $0 }) }
        // The place of a service that is just ending is taken over.
        let (place, released) = shelf.put(made, stamp: stamp, at: places[key])
        places[key] = place
        return (made, rested + [released].compactMap { $0 })
    }

    // MARK: Services

    /// A service says when something would no longer be lost with it; see ``ServiceShelf/changed(_:stamp:at:restingFrom:at:)``.
    mutating func changed(_ service: Service, stamp: Int, of key: Key, restingFrom end: Duration?, at now: Duration) -> [Service]
    {
        let rested = shelf.elapse(to: now)
        guard let place = places[key] else { return rested }
        let released = shelf.changed(service, stamp: stamp, at: place, restingFrom: end, at: now)
        return rested + [released].compactMap { $0 }
    }

    /// Nothing held a service any more.
    mutating func ended(stamp: Int, of key: Key) {
        guard let place = places[key], shelf.ended(stamp: stamp, at: place) else { return }
        places[key] = nil
    }

    /// Services whose pauses are over come to rest; returns what is to be released.
    mutating func elapse(to now: Duration) -> [Service] {
        shelf.elapse(to: now)
    }

    // MARK: All keys

    /// A sign-out begins: until ``release()`` no service is let go.
    mutating func hold() -> (keys: Set<Key>, services: [Service]) {
        shelf.hold()
        return current
    }

    /// Every key with a service, in use elsewhere or kept, and every key whose service is being made.
    ///
    /// The services are there only so that none ends under the lock.
    var current: (keys: Set<Key>, services: [Service]) {
        var keys = Set(making.keys), services: [Service] = []
        for (key, place) in places {
            guard let service = shelf.service(at: place) else { continue }
            keys.insert(key)
            services.append(service)
        }
        return (keys, services)
    }

    /// A sign-out has ended; returns what is to be released.
    mutating func release() -> [Service] {
        shelf.release()
    }

    /// How many services there are that are busy, idle and kept, or let go and not yet ended.
    var count: (busy: Int, idle: Int, released: Int) {
        (shelf.busyCount, shelf.idleCount, places.count - shelf.busyCount - shelf.idleCount)
    }
}
