import Synchronization

/// The mark that a load's task carries, so that no load waits for itself.
///
/// Tasks that a loader starts inherit it and may outlive the load; from its end on the mark means nothing.
final class LoadMark: Sendable {
    /// The loads that the current task is part of: a loader may ask another service, whose loader is then part of both.
    @TaskLocal static var current: [LoadMark] = []

    private let service: ObjectIdentifier
    private let hasEnded = Atomic<Bool>(false)

    init(of service: TokenService) {
        self.service = ObjectIdentifier(service)
    }

    /// Whether this is a running load of a service; a running load keeps its service alive, so the identity is its own.
    func isLoad(of service: TokenService) -> Bool {
        self.service == ObjectIdentifier(service) && !hasEnded.load(ordering: .acquiring)
    }

    func end() {
        hasEnded.store(true, ordering: .releasing)
    }
}
