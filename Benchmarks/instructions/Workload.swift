import AccessTokens
import AccessTokensDispatch
import AccessTokensKeys
import BenchmarkSubjects
import Dispatch
import RaceGallery

/// Something done so many times and nothing else, for a tool that counts a program's instructions.
struct Workload: Sendable {
    let name: String
    let run: @Sendable (_ count: Int) async throws -> Void

    private init(_ name: String, _ run: @escaping @Sendable (_ count: Int) async throws -> Void) {
        self.name = name
        self.run = run
    }

    static let all =
        own(keeping: Nothing.self) + own(keeping: SIMD8<UInt64>.self) + own(keeping: SIMD16<UInt64>.self)
        + own(keeping: SIMD32<UInt64>.self) + own(keeping: SIMD64<UInt64>.self) + others

    /// Callers in tasks of their own, which join a running load and keep a value across the call.
    private static func own<Kept: Keepable>(keeping kept: Kept.Type) -> [Workload] {
        let name = "own-\(MemoryLayout<Kept>.size)"
        return [
            Workload(name) { count in
                let gate = Gate(callers: count), service = TokenService(loader: gate)
                try await answered(count, after: gate, { try await service.retrieveToken() }) {
                    Task {
                        gate.arrive()
                        try await keeping(kept) { try await service.retrieveToken() }
                    }
                }
            },
            Workload("\(name)-task-value") { count in
                let gate = Gate(callers: count), service = AwaitedTaskService(loader: gate)
                try await answered(count, after: gate, { try await service.retrieveToken() }) {
                    Task {
                        gate.arrive()
                        try await keeping(kept) { try await service.retrieveToken() }
                    }
                }
            },
        ]
    }

    private static let others = [
        Workload("hit") { count in
            let service = try await Warm().service
            for _ in 0..<count { use(try await service.retrieveToken()) }
        },
        Workload("hit-floor") { count in
            let floor = try await Warm().floor
            for _ in 0..<count { use(floor.token()) }
        },
        Workload("hit-key") { count in
            let services = await WarmKeys(1).services
            for _ in 0..<count { use(try await services[0].retrieveToken()) }
        },
        Workload("hit-keys") { count in
            let warm = await WarmKeys(1_000)
            var key = 0
            for _ in 0..<count {
                use(try await warm.services[key].retrieveToken())
                key = warm.key(after: key)
            }
        },
        // Each service is made and kept; the table is in use elsewhere, so that nothing ends beside it.
        Workload("make-key") { count in
            let services = keys(Int.self)
            for key in 0..<count { use(services[key]) }
        },
        Workload("make-key-text") { count in
            let services = keys(String.self), tenants = tenants(atLeast: count)
            for key in 0..<count { use(services[tenants[key]]) }
        },
        Workload("miss-key") { count in
            let services = keys(Int.self)
            for key in 0..<count { use(try await services[key].retrieveToken()) }
        },
        Workload("miss-key-text") { count in
            let services = keys(String.self), tenants = tenants(atLeast: count)
            for key in 0..<count { use(try await services[tenants[key]].retrieveToken()) }
        },
        Workload("evict-key") { count in
            let services = TokenServices<Int>(keepingIdle: 1) { _ in Ready() }
            for key in 0..<count { use(try await services[key].retrieveToken()) }
        },
        Workload("load") { count in
            let service = TokenService(loader: Ready())
            for _ in 0..<count { try await reloaded(service) }
        },
        Workload("load-key") { count in
            let services = keys(Int.self)
            for _ in 0..<count { try await reloaded(services[0]) }
        },
        // All are open at once.
        Workload("streams") { count in
            let service = TokenService(loader: Ready())
            beginAndEnd(count, of: service)
            use(service)
        },
        Workload("miss") { count in
            for _ in 0..<count { use(try await TokenService(loader: Ready()).retrieveToken()) }
        },
        Workload("miss-task-value") { count in
            for _ in 0..<count { use(try await AwaitedTaskService(loader: Ready()).retrieveToken()) }
        },
        Workload("miss-callback") { count in
            for _ in 0..<count {
                let shim = AccessTokenService(loader: Ready())
                await called { done in shim.retrieveToken { _ in done() } }
            }
        },
        Workload("miss-stage3") { count in
            for _ in 0..<count {
                let stage3 = ThreadSafeTokenService(loader: Ready())
                await called { done in stage3.retrieveToken { _ in done() } }
            }
        },
        Workload("joined") { count in
            let gate = Gate(callers: count), service = TokenService(loader: gate)
            try await grouped(count) {
                gate.arrive()
                use(try await service.retrieveToken())
            }
        },
        Workload("joined-task-value") { count in
            let gate = Gate(callers: count), service = AwaitedTaskService(loader: gate)
            try await grouped(count) {
                gate.arrive()
                use(try await service.retrieveToken())
            }
        },
        // Each waits in the program's graph of loads, through which a circle would be found.
        Workload("waiting-loads") { count in
            let gate = Gate(callers: count), parent = TokenService(loader: gate)
            try await grouped(count) {
                let child = TokenService { _ in
                    gate.arrive()
                    return try await parent.retrieveToken()
                }
                use(try await child.retrieveToken())
            }
        },
        Workload("callback-awaited") { count in
            let shim = try await Warm().shim
            for _ in 0..<count { await called { done in shim.retrieveToken { _ in done() } } }
        },
        Workload("stage3-awaited") { count in
            let stage3 = try await Warm().stage3
            for _ in 0..<count { await called { done in stage3.retrieveToken { _ in done() } } }
        },
    ]
}

/// Services by key that are all kept.
private func keys<Key: Hashable & Sendable>(_ type: Key.Type) -> TokenServices<Key> {
    TokenServices(keepingIdle: .max) { _ in Ready() }
}

/// Strings to be keys, as many in a short run as in a long one, so that the making of them isn't counted.
private func tenants(atLeast count: Int) -> [String] {
    (0..<max(count, 4_000)).map { "tenant \($0)" }
}

private func reloaded(_ service: TokenService) async throws {
    use(try await service.retrieveToken())
    _ = await service.reset()
}

/// Begins so many streams of a service's events, which end when it returns: the optimizer could let them end after the service.
@inline(never)
private func beginAndEnd(_ count: Int, of service: TokenService) {
    use((0..<count).map { _ in service.events() })
}

/// Waits for a load's first caller and for those that `start` adds once it runs, which are answered in their order.
private func answered(
    _ count: Int, after gate: Gate, _ call: @escaping @Sendable () async throws -> AccessToken,
    _ start: () -> Task<Void, any Error>
) async throws {
    let first = Task { try await call() }
    while gate.loads == 0 { await Task {}.value }
    var last: Task<Void, any Error>?
    for _ in 0..<count { last = start() }
    use(try await first.value)
    try await last?.value
}

/// A loader that has its token at once.
private struct Ready: TokenLoader, AccessTokenLoader {
    static let token = AccessToken("ready", lifetime: .seconds(3600))
    var isRepeatable: Bool { false }

    func loadToken(replacing previous: AccessToken?) async throws -> AccessToken { Self.token }
    func load(then handler: @escaping Handler) { handler(.success(Self.token)) }
}
