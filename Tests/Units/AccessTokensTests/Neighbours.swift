import AccessTokensTesting
import TokenServiceConcurrency

@testable import AccessTokens

/// Services on one stage whose loaders, or stores, ask each other.
final class Neighbours: Sendable {
    typealias Loader = @Sendable (Neighbours) async throws -> AccessToken

    let stage = Stage(), clock = ManualClock()
    private let services = Lock<[TokenService]>([])
    private let gates = Lock<[String: SingleResult<Void>]>([:])

    /// - Parameter stores: The stores of some, by their service's number.
    init(_ loaders: [Loader], stores: [Int: any TokenStore] = [:]) {
        let services = loaders.enumerated().map { number, loader in
            TokenService(store: stores[number], environment: .driven(by: stage, clock: clock)) { [weak self] _ in
                guard let self else { throw CancellationError() }
                return try await loader(self)
            }
        }
        self.services.withLock { $0 = services }
        for case let store as AskingStore in stores.values { store.meet(self) }
    }

    subscript(number: Int) -> TokenService { services.withLock { $0[number] } }

    /// The actions of a loader or a store.
    func ask(_ number: Int, within limit: Duration? = nil) async throws -> AccessToken {
        try await self[number].retrieveToken(within: limit)
    }

    /// Waits until the test opens the gate.
    func pass(_ gate: String) async {
        try? await self.gate(gate).value()
    }

    func open(_ gates: String...) {
        for gate in gates { self.gate(gate).complete(with: .success(())) }
        stage.run()
    }

    func call(_ number: Int) -> Stage.Player<AccessToken> {
        stage.start { [service = self[number]] in try await service.retrieveToken() }
    }

    /// Whether a load of one of them waits for a service, or a load waits for one of them.
    var areWaiting: Bool {
        let all = Set(services.withLock { $0.map { ObjectIdentifier($0) } })
        return LoadMembership.waits.withLock { $0.contains(anyOf: all) }
    }

    private func gate(_ name: String) -> SingleResult<Void> {
        gates.withLock { gates in
            let gate = gates[name] ?? SingleResult()
            gates[name] = gate
            return gate
        }
    }
}

/// A store that runs an action in one of its operations, such as asking a service.
final class AskingStore: TokenStore {
    private let operation: String
    private let body: @Sendable (Neighbours) async throws -> Void
    private let neighbours = Lock<Weak>(Weak())

    private struct Weak: Sendable { weak var value: Neighbours? }

    init(in operation: String, _ body: @escaping @Sendable (Neighbours) async throws -> Void) {
        self.operation = operation
        self.body = body
    }

    func meet(_ neighbours: Neighbours) { self.neighbours.withLock { $0.value = neighbours } }

    @concurrent func load() async throws -> StoredToken? {
        try await perform("load")
        return nil
    }

    @concurrent func save(_ token: StoredToken) async throws { try await perform("save") }

    @concurrent func remove() async throws { try await perform("remove") }

    private func perform(_ operation: String) async throws {
        guard operation == self.operation, let neighbours = neighbours.withLock({ $0.value }) else { return }
        try await body(neighbours)
    }
}

extension Stage.Player {
    /// The code of the innermost cause.
    var firstCause: TokenServiceError.Code? {
        var cause = error as? TokenServiceError
        while let next = cause?.underlying as? TokenServiceError { cause = next }
        return cause?.code
    }
}
