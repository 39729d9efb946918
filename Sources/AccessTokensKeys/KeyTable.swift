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

    /// Removes a service that has ended, since nothing held it any more.
    ///
    /// - Returns: The removed entry, to be released outside the lock: releasing a key may run foreign code.
    @inlinable
    mutating func ended(_ key: Key, at place: Int, stamp: Int) -> (key: Key, place: Int)? {
        guard shelf.ended(stamp: stamp, at: place), let index = places.index(forKey: key) else { return nil }
        let entry = places.remove(at: index)
        return (entry.key, entry.value)
    }

    /// All keys with a service, in use elsewhere or kept, and all keys whose service is being made.
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

    /// Starts a change that all services must hear of.
    ///
    /// - Returns: The keys of all services, including those being made, which will be made again.
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
