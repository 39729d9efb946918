import Synchronization
import TokenServiceConcurrency

/// Marks the tasks of a load, including its restore and its save, so that no load waits for itself.
///
/// Tasks that a loader starts inherit it and may outlive the load. It has no effect once no caller waits for the load.
package final class LoadMembership: Sendable {
    /// The load that the current task is part of.
    @TaskLocal package static var current: LoadMembership?

    /// Which loads wait for the tokens of which services, in the whole program; empty unless a loader asks a service.
    static let waits = Lock(LoadWaits())

    let service: ObjectIdentifier
    /// The number of the flight, or of the store's operation.
    let work: Int
    /// The service's clock and the load's deadline; `nil` for an operation of the store.
    private let limit: (clock: ServiceClock, deadline: Duration)?
    private let ended = Atomic<Bool>(false)

    init(of service: TokenService, work: Int, until deadline: Duration? = nil) {
        self.service = ObjectIdentifier(service)
        self.work = work
        limit = deadline.map { (service.clock, $0) }
    }

    /// Whether something waits for the load's result, and its time isn't over.
    var isInTime: Bool { !hasEnded && limit.map { $0.clock.now() < $0.deadline } ?? true }

    var hasEnded: Bool { ended.load(ordering: .acquiring) }

    func end() {
        ended.store(true, ordering: .releasing)
    }
}

/// Loads that wait for a service's token, as the edges of a graph between services; a load in a cycle would wait for itself.
///
/// An edge exists only while a load waits, and a waiting load keeps its service alive, so no identifier is reused meanwhile.
struct LoadWaits: Sendable {
    /// Keyed by the service whose loads wait, so that following a chain touches no other service.
    private var waits: [ObjectIdentifier: [(membership: LoadMembership, target: ObjectIdentifier)]] = [:]

    /// Whether this wait would close a cycle: at the end of a chain, the load would wait for itself.
    func closesCircle(_ membership: LoadMembership, waitingFor target: ObjectIdentifier) -> Bool {
        guard !membership.hasEnded else { return false }
        var reached: Set<ObjectIdentifier> = [], frontier = [target]
        while let service = frontier.popLast() {
            if service == membership.service { return true }
            guard reached.insert(service).inserted else { continue }
            for wait in waits[service] ?? [] where !wait.membership.hasEnded { frontier.append(wait.target) }
        }
        return false
    }

    /// Notes that a load waits; returns `false` if it would wait for itself.
    mutating func begin(_ membership: LoadMembership, waitingFor target: ObjectIdentifier) -> Bool {
        guard !closesCircle(membership, waitingFor: target) else { return false }
        if !membership.hasEnded { waits[membership.service, default: []].append((membership, target)) }
        return true
    }

    mutating func end(_ membership: LoadMembership, waitingFor target: ObjectIdentifier) {
        guard let index = waits[membership.service]?.firstIndex(where: { $0.membership === membership && $0.target == target })
        else { return }
        waits[membership.service]?.remove(at: index)
        if waits[membership.service]?.isEmpty == true { waits[membership.service] = nil }
    }

    /// Whether a load of one of these services waits, or one waits for one of them.
    func contains(anyOf services: Set<ObjectIdentifier>) -> Bool {
        waits.contains { services.contains($0) || $1.contains { services.contains($0.target) } }
    }
}

extension TokenService {
    /// Notes that the current task, if it is part of a load, waits for this service; returns the load's membership.
    nonisolated func beginWaiting() throws -> LoadMembership? {
        guard let membership = LoadMembership.current else { return nil }
        let target = ObjectIdentifier(self)
        guard LoadMembership.waits.withLock({ $0.begin(membership, waitingFor: target) }) else {
            throw TokenServiceError(.loaderWaitsForItself)
        }
        return membership
    }

    nonisolated func endWaiting(_ membership: LoadMembership?) {
        guard let membership else { return }
        let target = ObjectIdentifier(self)
        LoadMembership.waits.withLock { $0.end(membership, waitingFor: target) }
    }
}
