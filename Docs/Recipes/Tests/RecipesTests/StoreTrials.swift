import AccessTokens
import AccessTokensKeys
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Synchronization
import Testing

/// Adds 1 to the number in a record, so many times.
func count(_ times: Int, in store: any SharedTokenStore) async throws {
    for _ in 0..<times {
        while true {
            let known = try await store.load()
            let number = known.flatMap { Int(String(decoding: $0.bytes, as: UTF8.self)) } ?? 0
            if case .done = try await store.swap(Data("\(number + 1)".utf8), ifAt: known?.revision) { break }
        }
    }
}

func number(in store: any SharedTokenStore) async throws -> Int? {
    try await store.load().flatMap { Int(String(decoding: $0.bytes, as: UTF8.self)) }
}

/// Checks the promises of a shared store, and that a record's age is told and grows.
func checkPromises(_ stores: [any SharedTokenStore]) async throws {
    let report = try await checkSharedTokenStore(stores)
    #expect(report.failures == 0 && report.swaps > 0 && report.conflicts > 0)
    let age = try #require(try await stores[0].load()?.age)
    #expect(age < .seconds(60))
    while try await stores[0].load()?.age ?? .zero <= age {}
}

/// Lets two processes count to 50 each.
func countInProcesses(_ store: any SharedTokenStore, process: @Sendable () async -> Void) async throws {
    async let first: Void = process()
    async let second: Void = process()
    _ = await (first, second)
    #expect(try await number(in: store) == 100)
}

/// Counts until the process is killed, which it soon is after the first time.
func countUntilKilled(in store: any SharedTokenStore) async throws {
    try await count(1, in: store)
    Thread.detachNewThread {
        Thread.sleep(forTimeInterval: .random(in: 0.05...0.15))
        kill(getpid(), SIGKILL)
    }
    try await count(1_000_000, in: store)
}

/// Counts on after each of three processes that were killed.
func countAfterKills(_ store: any SharedTokenStore, process: () async -> Void) async throws {
    for _ in 1...3 {
        await process()
        // The request of the killed process may only take effect now.
        try await count(1, in: store)
        #expect(try await number(in: store) ?? 0 > 1)
    }
}

/// Counts what passes, and makes a caller wait a little after a failure, so that it doesn't spend its rounds while a server is down.
final class CountingStore: SharedTokenStore {
    struct Counts {
        var loads = 0, swaps = 0, conflicts = 0, failures = 0
    }

    private let store: any SharedTokenStore
    private let state = Mutex(Counts())
    var counts: Counts { state.withLock { $0 } }

    init(_ store: any SharedTokenStore) { self.store = store }

    @concurrent func load() async throws -> SharedRecord? {
        state.withLock { $0.loads += 1 }
        return try await noting { try await store.load() }
    }

    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        state.withLock { $0.swaps += 1 }
        let outcome = try await noting { try await store.swap(bytes, ifAt: revision) }
        if case .conflict = outcome { state.withLock { $0.conflicts += 1 } }
        return outcome
    }

    private func noting<Value>(_ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch {
            state.withLock { $0.failures += 1 }
            try await Task.sleep(for: .milliseconds(300))
            throw error
        }
    }
}

/// Checks that a rotation takes two requests of one service, and prints how many of four that load at once.
func checkRequests(_ name: String, alone: any SharedTokenStore, together: [any SharedTokenStore]) async throws {
    let counts = try await requests(of: [alone], rotations: 20)
    #expect(counts[0].swaps == 40 && counts[0].loads == 0 && counts[0].conflicts == 0)
    let sum = try await requests(of: together, rotations: 20).map { $0.loads + $0.swaps }.reduce(0, +)
    print("\(name): \(Double(sum) / 20) requests a rotation of \(together.count) services that load at once")
}

/// Rotates a grant, and returns what each store was asked for.
private func requests(of stores: [any SharedTokenStore], rotations: Int) async throws -> [CountingStore.Counts] {
    let clock = ManualClock(), counting = stores.map { CountingStore($0) }
    let server = SimulatedAuthorizationServer(clock: clock, rotatesRefreshTokens: true)
    // A record carries the wall time of its load: the two clocks go together.
    let environment = TokenService.Environment(
        clock: clock, wallClock: { Date(timeIntervalSinceReferenceDate: clock.now.offset / .seconds(1)) })
    let services = counting.map { TokenService(sharedStore: $0, environment: environment, loader: server.loader) }
    await services[0].replace(with: server.signIn())
    var before = counting.map(\.counts)
    for rotation in 0...rotations {
        // The first time, each service has to read once.
        if rotation == 1 { before = counting.map(\.counts) }
        clock.advance(by: .seconds(3600))
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for service in services { group.addTask { try await service.retrieveToken().value } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(tokens.count == 1 && server.refreshes == rotation + 1)
    }
    #expect(server.reuseDetected == 0)
    return zip(before, counting.map(\.counts)).map { before, after in
        .init(loads: after.loads - before.loads, swaps: after.swaps - before.swaps, conflicts: after.conflicts - before.conflicts)
    }
}

/// The state that a trial's tasks share.
private final class Course: Sendable {
    private struct State {
        var isOver = false
        var signIns = 0
        var ended = 0
        var outages: [ClosedRange<ContinuousClock.Instant>] = []
    }

    private let state = Mutex(State())
    var isOver: Bool { state.withLock { $0.isOver } }
    var signIns: Int { state.withLock { $0.signIns } }
    var ended: Int { state.withLock { $0.ended } }
    var outages: [ClosedRange<ContinuousClock.Instant>] { state.withLock { $0.outages } }
    func end() { state.withLock { $0.isOver = true } }
    func noteEnd() { state.withLock { $0.ended += 1 } }
    func noteSignIn() { state.withLock { $0.signIns += 1 } }
    func noteOutage(since start: ContinuousClock.Instant) { state.withLock { $0.outages.append(start...ContinuousClock.now) } }
}

/// Checks stores of one record while their server is killed and started again.
func checkDuringCrashes(of server: TestServer, _ stores: [any SharedTokenStore], rounds: Int = 150) async throws {
    let counting = stores.map { CountingStore($0) }
    @Sendable func swaps() -> Int { counting.map(\.counts.swaps).reduce(0, +) }
    let course = Course()
    async let crashes: Int = {
        // The check begins with operations that may not fail.
        var goal = 100, crashes = 0
        while !course.isOver {
            if swaps() > goal {
                try await server.restart()
                (goal, crashes) = (swaps() + 100, crashes + 1)
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        return crashes
    }()
    defer { course.end() }
    let report = try await checkSharedTokenStore(counting, callers: 6, rounds: rounds)
    course.end()
    let number = try await crashes
    #expect(number >= 2 && report.swaps > 50, "\(number) crashes, \(report)")
}

/// Lets services share a grant, and rotate it while something happens to their store.
///
/// - Parameters:
///   - limits: How long a load may take, and how long it may be under way then.
///   - events: What happens; its last rotations show that the services go on.
/// - Returns: The strict server.
private func rotate(
    in stores: [any SharedTokenStore], _ limits: (load: Duration, transport: Duration),
    during events: @escaping @Sendable (TimingServer) async throws -> Void
) async throws -> TimingServer {
    let strict = TimingServer(), course = Course()
    let services = stores.enumerated().map { number, store in
        TokenService(
            policy: RefreshPolicy(loadTimeout: limits.load), sharedStore: store,
            sharing: TokenSharing(transportLimit: limits.transport), loader: strict.loader(of: number))
    }
    if let token = strict.signIn() { await services[0].replace(with: token) }
    try await withThrowingTaskGroup(of: Void.self) { group in
        for service in services {
            group.addTask {
                while !course.isOver {
                    do {
                        _ = try await service.retrieveToken()
                    } catch let error as TokenServiceError where error.remedy == .signIn {
                        if let token = strict.signIn() {
                            course.noteSignIn()
                            await service.replace(with: token)
                        }
                    } catch {
                        // The pause after a failure, or a store that is away.
                    }
                    try await Task.sleep(for: .milliseconds(Int.random(in: 1...10)))
                }
            }
        }
        group.addTask {
            defer { course.end() }
            try await strict.rotations(15)
            try await events(strict)
            try await strict.rotations(15)
        }
        try await group.waitForAll()
    }
    // Nothing but the server asks for a sign-in: the store never loses a record.
    #expect(course.signIns <= strict.reuses)
    return strict
}

/// Lets services share a grant while their store's server is killed, stays away for a while, and is started again.
///
/// - Returns: What the strict server's ledger says, and nothing explains.
func rotateDuringCrashes(of server: TestServer, _ stores: [any SharedTokenStore]) async throws -> [String] {
    let course = Course()
    let strict = try await rotate(in: stores, (.milliseconds(600), .milliseconds(400))) { strict in
        for absence in [0, 0.3, 0, 1, 0, 3, 0] {
            let start = ContinuousClock.now
            try await server.crash()
            try await Task.sleep(for: .seconds(absence))
            try await server.restart()
            course.noteOutage(since: start)
            try await strict.rotations(15)
        }
    }
    let ledger = strict.ledger
    print("\(server.name): \(strict.rotations) rotations, \(strict.reuses) reuses")
    return ledger.filter { !$0.isGood }.compactMap { reuse in
        // The server was away from a moment after the token was spent until it was presented again: its successor wasn't saved.
        guard let first = ledger.first(where: { $0.token == reuse.token && $0.isGood }) else {
            return "\(reuse.token) was never good"
        }
        let isExplained = course.outages.contains { $0.overlaps(first.time...reuse.time) }
        return isExplained ? nil : "\(reuse.token) was presented by \(first.service), and again by \(reuse.service)"
    }
}

/// Lets services share a grant while their store's server is killed, and one that follows it takes its place.
///
/// - Parameter isEarly: Whether the follower takes it while the server is still running.
/// - Returns: How often a used refresh token was presented.
func rotateDuringFailover(
    from server: TestServer, to follower: TestServer, isEarly: Bool, _ stores: [any SharedTokenStore],
    _ successors: [any SharedTokenStore]
) async throws -> Int {
    let moving = stores.map { MovingStore($0) }
    var reuses = 0
    try await server.restoring {
        let strict = try await rotate(in: moving, (.seconds(30), .seconds(30))) { strict in
            if isEarly {
                try await follower.promote()
                // Services that could rotate would.
                try await Task.sleep(for: .milliseconds(500))
            }
            try await server.crash()
            if !isEarly { try await follower.promote() }
            for (store, successor) in zip(moving, successors) { store.move(to: successor) }
            // A process that starts now knows only what the follower has.
            _ = try? await TokenService(sharedStore: successors[0], loader: strict.loader(of: stores.count)).retrieveToken()
        }
        print("\(server.name), failover: \(strict.rotations) rotations, \(strict.reuses) reuses")
        reuses = strict.reuses
    }
    return reuses
}

/// A store whose server's address changes, as in a failover.
private final class MovingStore: SharedTokenStore {
    private let store: Mutex<any SharedTokenStore>

    init(_ store: any SharedTokenStore) { self.store = Mutex(store) }

    func move(to other: any SharedTokenStore) { store.withLock { $0 = other } }

    @concurrent func load() async throws -> SharedRecord? { try await store.withLock { $0 }.load() }

    @concurrent func swap(_ bytes: Data, ifAt revision: SharedRecord.Revision?) async throws -> SharedRecord.Swap {
        try await store.withLock { $0 }.swap(bytes, ifAt: revision)
    }
}

/// Lets a server that follows another one take its place, without the last rotation, which the other one has acknowledged.
///
/// - Parameter copied: What the follower has of the record.
func failOver(
    from server: TestServer, to follower: TestServer, _ store: any SharedTokenStore, _ successor: any SharedTokenStore,
    copied: () async throws -> Data?
) async throws {
    let clock = ManualClock(), moving = MovingStore(store)
    let strict = SimulatedAuthorizationServer(clock: clock, rotatesRefreshTokens: true)
    let environment = TokenService.Environment(
        clock: clock, wallClock: { Date(timeIntervalSinceReferenceDate: clock.now.offset / .seconds(1)) })
    let old = TokenService(sharedStore: moving, environment: environment, loader: strict.loader)
    await old.replace(with: strict.signIn())
    while try await copied() != store.load()?.bytes {}
    try await follower.promote()
    // Acknowledged, but the follower never hears of it.
    clock.advance(by: .seconds(3600))
    _ = try await old.retrieveToken()
    try await server.restoring {
        try await server.crash()
        moving.move(to: successor)
        clock.advance(by: .seconds(3600))
        // A process that has seen the lost record doesn't present the spent token.
        let lost = await #expect(throws: TokenServiceError.self) { try await old.retrieveToken() }
        #expect(lost?.remedy == .signIn && strict.reuseDetected == 0)
        // Another can't know that it is spent.
        let new = TokenService(sharedStore: successor, environment: environment, loader: strict.loader)
        let refused = await #expect(throws: TokenServiceError.self) { try await new.retrieveToken() }
        #expect(refused?.remedy == .signIn && strict.reuseDetected == 1)
    }
}

/// Asks a service that shares its grant for tokens, again and again, until the process is killed.
func work(in store: any SharedTokenStore, with ledger: String) async throws {
    try Data().write(to: URL(fileURLWithPath: ledger + "-\(getpid())"))
    let tokens = TokenService(
        policy: RefreshPolicy(loadTimeout: .milliseconds(600)), sharedStore: store,
        sharing: TokenSharing(transportLimit: .milliseconds(400)), loader: StrictServer(path: ledger))
    while true {
        // It fails during the pause after a failure, or while it waits for a mark.
        _ = try? await tokens.retrieveToken()
        try await Task.sleep(for: .milliseconds(.random(in: 1...10)))
    }
}

/// Lets three processes share a grant, kills them one after the other, and starts others in their place.
///
/// - Parameters:
///   - store: The store that they use.
///   - kills: How many to kill.
///   - process: Runs a process that does ``work(in:with:)``, and returns when it was killed.
/// - Returns: What the strict server's ledger says, and no killed process explains.
func killClients(
    _ store: any SharedTokenStore, kills: Int, process: @escaping @Sendable (_ ledger: String) async -> Void
) async throws -> [String] {
    let folder = FileManager.default.temporaryDirectory.appending(path: "recipes-\(UUID())").path, path = folder + "/ledger"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Data().write(to: URL(fileURLWithPath: path))
    var ledger = try Ledger(path: path), problems: [String] = []
    // On a busy machine those that are killed first may not have asked yet.
    while ledger.killed.count < kills || ledger.rotations == 0 {
        let server = StrictServer(path: path), token = try server.signIn()
        await TokenService(sharedStore: store, loader: server).replace(with: token)
        problems += try ledger.read()
        let course = Course()
        for _ in 1...3 {
            Task {
                while !course.isOver { await process(path) }
                course.noteEnd()
            }
        }
        // While processes are awaited, they block Swift's own threads.
        let known = ledger
        let outcome = try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try killAtRandom(in: folder, kills, known, course) })
            }
        }
        ledger = outcome.0
        problems += outcome.problems
    }
    print("\(ledger.killed.count) clients killed: \(ledger.summary)")
    #expect(ledger.rotations > 0)
    return problems
}

/// Kills processes until so many were killed or the session has ended, and then the rest.
private func killAtRandom(
    in folder: String, _ kills: Int, _ known: Ledger, _ course: Course
) throws -> (Ledger, problems: [String]) {
    var ledger = known, problems: [String] = []
    func kill(_ count: Int) throws {
        let began = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { pid_t($0.dropFirst(7)) }
        problems += try ledger.read()
        for victim in began.filter({ !ledger.killed.contains($0) }).shuffled().prefix(count) {
            ledger.killed.insert(victim)
            Foundation.kill(victim, SIGKILL)
        }
    }
    while ledger.killed.count < kills || ledger.rotations == 0, !ledger.hasEnded {
        Thread.sleep(forTimeInterval: .random(in: 0...0.3))
        try kill(1)
    }
    course.end()
    while course.ended < 3 {
        try kill(3)
        Thread.sleep(forTimeInterval: 0.05)
    }
    problems += try ledger.read()
    return (ledger, problems)
}

/// Whether Swift's own threads are free while calls wait for a server that doesn't answer.
func threadsAreFree(during calls: [@Sendable () async throws -> Void]) async throws -> Bool {
    try await withThrowingTaskGroup(of: Bool.self) { group in
        for call in calls {
            group.addTask {
                await #expect(throws: (any Error).self) { try await call() }
                return false
            }
        }
        try await Task.sleep(for: .milliseconds(200))
        group.addTask { true }
        return try await group.next() ?? false
    }
}

/// Signs an account out in a process that has never used it.
func checkSignOut(in stores: any SharedTokenStores<String>, named prefix: String) async throws {
    let server = SimulatedAuthorizationServer(clock: ManualClock(), rotatesRefreshTokens: true)
    struct SignedOut: TokenLoadFailure { let remedy = TokenServiceError.Remedy.signIn }
    func process() -> TokenServices<String> {
        TokenServices(sharedStores: stores) { _, previous in
            guard previous?.refreshToken != nil else { throw SignedOut() }
            return try await server.loader.loadToken(replacing: previous)
        }
    }
    let anna = prefix + "anna", ben = prefix + "ben", first = process()
    for name in [anna, ben] { await first[name].replace(with: server.signIn()) }
    let signOut = await process().reset { $0 == anna }
    #expect(signOut.storeFailure == nil && signOut.changes[anna]?.discarded.count == 1)
    let third = process()
    let error = await #expect(throws: TokenServiceError.self) { try await third[anna].retrieveToken() }
    #expect(error?.remedy == .signIn)
    _ = try await third[ben].retrieveToken()
}
