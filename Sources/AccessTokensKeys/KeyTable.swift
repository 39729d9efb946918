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

    /// The service of a key, or a place for it.
    ///
    /// - Returns: Also the service that is now one too many, to be released.
    @inlinable
    mutating func enter(_ key: Key) -> (entry: ServiceShelf.Entry, released: Service?) {
        shelf.enter(&places[key, default: ServiceShelf.noPlace])
    }

    /// A service has ended; nothing held it any more.
    ///
    /// - Returns: The entry that went, to be released outside the lock: the end of a key may be foreign code.
    @inlinable
    mutating func ended(_ key: Key, at place: Int, stamp: Int) -> (key: Key, place: Int)? {
        guard shelf.ended(stamp: stamp, at: place), let index = places.index(forKey: key) else { return nil }
        let entry = places.remove(at: index)
        return (entry.key, entry.value)
    }

    /// All keys with a service, in use elsewhere or kept, and all keys whose service is being made.
    ///
    /// The services are returned only so that none ends under the lock.
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

    /// All services are about to be told something.
    ///
    /// - Returns: The keys of those that there are or that are being made; the latter will be made again.
    mutating func turn() -> (keys: Set<Key>, services: [Service]) {
        shelf.turn()
        return current
    }

    /// A sign-out begins: until `shelf.release()` no service is released.
    mutating func hold() -> (keys: Set<Key>, services: [Service]) {
        shelf.hold()
        return current
    }
}
