/// Which key has which service: a pure value behind the one lock of ``TokenServices``, with the services on a shelf.
@usableFromInline
struct KeyTable<Key: Hashable & Sendable>: Sendable {
    @usableFromInline typealias Service = ServiceShelf.Service

    /// Where on the shelf the key's service is.
    @usableFromInline var places: [Key: Int] = [:]
    @usableFromInline var shelf: ServiceShelf

    init(keepingIdle limit: Int) {
        shelf = ServiceShelf(keepingIdle: limit)
    }

    /// The service of a key, or a place for it.
    ///
    /// - Returns: Also what is over the bound now, to be released.
    @inlinable
    mutating func enter(_ key: Key) -> (entry: ServiceShelf.Entry, released: Service?) {
        shelf.enter(&places[key, default: ServiceShelf.noPlace])
    }

    /// Nothing held a service any more.
    @inlinable
    mutating func ended(_ key: Key, at place: Int, stamp: Int) {
        if shelf.ended(stamp: stamp, at: place) { places[key] = nil }
    }

    /// Every key with a service, in use elsewhere or kept, and every key whose service is being made.
    ///
    /// The services are there only so that none ends under the lock.
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

    /// A sign-out begins: until `shelf.release()` no service is let go.
    mutating func hold() -> (keys: Set<Key>, services: [Service]) {
        shelf.hold()
        return current
    }
}
