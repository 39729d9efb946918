import AccessTokens
import AccessTokensKeys
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import TokenServiceConcurrency

/// The random life of a program whose store fails, heals, and outlives it, at a server that ends a session when a refresh token is
/// presented twice.
struct StoreStorm {
    enum Form: CaseIterable {
        /// One service with a store of its own.
        case service
        /// Three keys that use one grant.
        case keys
        /// One service whose grant other processes may share.
        case shared
    }

    /// What every process of the program talks to, and what is known about the user's sessions.
    fileprivate final class Surroundings: Sendable {
        struct Facts {
            /// The session of each refresh token and each access token, and each session's refresh token that is still good.
            var sessions: [String: Int] = [:]
            var current: [Int: String] = [:]
            /// The user's session; `nil` after a sign-out.
            var session: Int?
            /// The sessions of which a killed process took the refresh token with it.
            var lost: Set<Int> = []
            var needsSignIn = true
            var latency = Duration.zero
            /// Whether the next request doesn't reach the server.
            var fails = false
            var exchanges = 0
            var problems: [String] = []
            /// How often the user or a restart has begun something new.
            var epoch = 0
            /// Whether nobody is signed in and an earlier process has left a damaged file.
            var mayBeDamaged = false
        }

        let facts = Lock(Facts())
        let clock = ManualClock()
        let server: SimulatedAuthorizationServer
        let store: StormyStore

        init() {
            server = SimulatedAuthorizationServer(
                clock: clock, tokenLifetime: .seconds(600), keepsOneTokenValid: false, rotatesRefreshTokens: true)
            store = StormyStore(clock)
        }

        func signIn() -> AccessToken {
            let token = server.signIn()
            facts.withLock { facts in
                let session = facts.epoch
                facts.note(token, of: session)
                (facts.session, facts.needsSignIn) = (session, false)
            }
            return token
        }

        @concurrent func exchange(_ previous: AccessToken?) async throws -> AccessToken {
            guard let presented = previous?.refreshToken else { throw ScriptedFailure.grantRefused }
            let fails = facts.withLock { facts in
                defer { facts.fails = false }
                return facts.fails
            }
            if fails { throw ScriptedFailure.transient }
            let reuses = server.reuseDetected, answer: Result<AccessToken, any Error>
            do { answer = .success(try await server.loader.loadToken(replacing: previous)) } catch { answer = .failure(error) }
            let latency = facts.withLock { facts in
                let session = facts.sessions[presented] ?? -1
                if server.reuseDetected > reuses, !facts.lost.contains(session) { facts.problems.append("reuse of \(presented)") }
                if case .success(let token) = answer {
                    facts.note(token, of: session)
                    facts.exchanges += 1
                }
                return facts.latency
            }
            if latency > .zero { try? await clock.sleep(for: latency) }
            return try answer.get()
        }
    }

    /// One run of the program.
    private struct Process: Sendable {
        let isAlive = Life()
        let service: @Sendable (Int) -> TokenService
        let drain: @Sendable (Duration) async -> DrainResult
        let resume: @Sendable () async -> Void

        final class Life: Sendable { let isOn = Lock(true) }

        init(_ form: Form, in surroundings: Surroundings, on stage: Stage, seed: UInt64) {
            let isOn: @Sendable () -> Bool = { [isAlive] in isAlive.isOn.withLock { $0 } }
            let load: @Sendable @concurrent (AccessToken?) async throws -> AccessToken = { previous in
                guard isOn() else { throw ScriptedFailure.transient }
                return try await surroundings.exchange(previous)
            }
            let start = ManualClock().now, clock = surroundings.clock
            let environment = TokenService.Environment.driven(
                by: stage, clock: clock,
                wallClock: { Date(timeIntervalSince1970: start.duration(to: clock.now) / .seconds(1)) }, seed: seed)
            let store = StormyStore.Handle(store: surroundings.store, isAlive: isOn)
            switch form {
            case .service, .shared:
                let shared = StormyStore.SharedHandle(store: surroundings.store, isAlive: isOn)
                let service =
                    form == .shared
                    ? TokenService(sharedStore: shared, environment: environment) { try await load($0) }
                    : TokenService(store: store, environment: environment) { try await load($0) }
                self.service = { _ in service }
                drain = { await service.drain(within: $0) }
                resume = { await service.resume() }
            case .keys:
                let services = TokenServices<Int>(
                    keepingIdle: 1, grant: { _ in 0 }, stores: OneStore(store: store), environment: environment
                ) { _, previous in try await load(previous) }
                service = { services[$0] }
                drain = { await services.drain(within: $0) }
                resume = { await services.resume() }
            }
        }

        private struct OneStore: TokenStores {
            let store: StormyStore.Handle
            func store(for key: Int) -> any TokenStore { store }
            @concurrent func forEachStoredKey(_ body: @escaping @Sendable (Int) -> Void) async { body(0) }
        }
    }

    private struct Caller {
        let player: Stage.Player<AccessToken>, epoch: Int, name: String
    }

    private let form: Form
    private let seed: UInt64
    /// Whether an operation may take so long that it counts as lost.
    private let losesOperations: Bool
    private let stage = Stage()
    private let surroundings = Surroundings()
    private var random: SplitMix64
    private var process: Process
    private var callers: [Caller] = []
    private var drain: Stage.Player<DrainResult>?
    private(set) var steps: [String] = []

    init(_ form: Form, seed: UInt64, losesOperations: Bool = false) {
        (self.form, self.seed, self.losesOperations) = (form, seed, losesOperations)
        random = SplitMix64(seed: seed)
        process = Process(form, in: surroundings, on: stage, seed: seed)
    }

    var problems: [String] { surroundings.facts.withLock { $0.problems } }
    var exchanges: Int { surroundings.facts.withLock { $0.exchanges } }

    mutating func run() {
        for _ in 1...50 where problems.isEmpty { step() }
        if problems.isEmpty { end() }
    }

    // MARK: Steps

    private mutating func step() {
        let needsSignIn = surroundings.facts.withLock { $0.needsSignIn }
        switch random.below(needsSignIn ? 24 : 20) {
        case 0...3: call()
        case 4: advance(by: random.below(7) + 1)
        case 5: advance(by: [31, 61, 100][random.below(3)])
        case 6, 7: advance(by: 450 + random.below(200))
        case 8...10: turn()
        case 11: turnServer()
        case 12: invalidate()
        case 13: perform("retryNow") { await $0.retryNow() }
        case 14: if random.below(3) == 0 { signOut() }
        case 15: startDrain()
        case 16: restart()
        case 17: if random.below(2) == 0 { kill() }
        case 18: fair()
        case 19: if random.below(4) == 0 { signIn() }
        default: signIn()
        }
        check()
    }

    private var key: Int { mutating get { random.below(3) } }

    private mutating func call() {
        let service = process.service(key), epoch = surroundings.facts.withLock { $0.epoch }
        steps.append("call")
        callers.append(Caller(player: stage.start { try await service.retrieveToken() }, epoch: epoch, name: "\(steps.count)"))
    }

    private mutating func advance(by seconds: Int) {
        steps.append("\(seconds) s")
        // In a longer step an operation would count as lost, as after a computer's sleep.
        let longest = losesOperations ? seconds : 20
        for passed in stride(from: 0, to: seconds, by: longest) {
            surroundings.clock.advance(by: .seconds(min(longest, seconds - passed)))
            stage.run()
        }
    }

    private mutating func turn() {
        let weather = StormyStore.Weather.allCases[random.below(StormyStore.Weather.allCases.count)]
        let latency = [0, 0, 0, 2, 8, losesOperations ? 120 : 20][random.below(6)]
        steps.append("\(weather), \(latency) s")
        let retryAfter: Duration? = random.below(2) == 0 ? nil : .seconds(1 + random.below(90))
        surroundings.store.turn(weather, latency: .seconds(latency), retryAfter: retryAfter)
    }

    private mutating func fair() {
        steps.append("fair")
        surroundings.store.turn(.fair)
    }

    private mutating func turnServer() {
        let latency = [0, 0, 3, 40][random.below(4)], fails = random.below(3) == 0
        steps.append("server: \(latency) s\(fails ? ", fails" : "")")
        surroundings.facts.withLock { ($0.latency, $0.fails) = (.seconds(latency), fails) }
    }

    private mutating func invalidate() {
        guard let token = process.service(0).cachedToken else { return }
        perform("invalidate") { await $0.invalidate(token) }
    }

    private mutating func perform(_ name: String, _ body: @escaping @Sendable (TokenService) async -> Void) {
        let service = process.service(key)
        steps.append(name)
        stage.start { await body(service) }
    }

    private mutating func signIn() {
        surroundings.facts.withLock { ($0.epoch, $0.mayBeDamaged) = ($0.epoch + 1, false) }
        let token = surroundings.signIn()
        perform("sign-in \(token.refreshToken ?? "")") { _ = await $0.replace(with: token) }
    }

    private mutating func signOut() {
        surroundings.facts.withLock {
            ($0.session, $0.needsSignIn, $0.mayBeDamaged, $0.epoch) = (nil, true, false, $0.epoch + 1)
        }
        perform("sign-out") { _ = await $0.reset() }
    }

    // MARK: Ends of a process

    private mutating func startDrain(within limit: Int = 8) {
        guard drain == nil else { return }
        steps.append("drain")
        drain = stage.start { [process] in await process.drain(.seconds(limit)) }
    }

    private mutating func restart() {
        startDrain()
        for _ in 0..<40 where drain != nil {
            advance(by: 1)
            check()
        }
        kill()
    }

    private mutating func kill() {
        steps.append("kill")
        process.isAlive.isOn.withLock { $0 = false }
        let stored = surroundings.store.grant
        surroundings.facts.withLock { facts in
            facts.epoch += 1
            facts.session = stored.flatMap { facts.sessions[$0] }
            if let session = facts.session, facts.current[session] != stored { facts.lost.insert(session) }
            facts.needsSignIn = facts.session == nil
            facts.mayBeDamaged = surroundings.store.isDamaged
        }
        (callers, drain) = ([], nil)
        process = Process(form, in: surroundings, on: stage, seed: seed)
        stage.run()
    }

    // MARK: Checks

    private func note(_ problem: String) { surroundings.facts.withLock { $0.problems.append(problem) } }

    /// The refresh token that the store should have.
    private var expected: String? { surroundings.facts.withLock { facts in facts.session.flatMap { facts.current[$0] } } }

    private var isLost: Bool { surroundings.facts.withLock { facts in facts.session.map(facts.lost.contains) ?? false } }

    private mutating func check() {
        for caller in callers where caller.player.isDone {
            let error = caller.player.error as? TokenServiceError
            surroundings.facts.withLock { facts in
                guard caller.epoch == facts.epoch else { return }
                if error?.remedy == .signIn { facts.needsSignIn = true }
                // The same user signs in again, so another key keeps its access token.
                if form != .keys, let token = caller.player.value, facts.sessions[token.value] != facts.session {
                    facts.problems.append("caller \(caller.name) gets \(token.value) of another session")
                }
            }
        }
        callers.removeAll { $0.player.isDone }
        guard let result = drain?.value else { return }
        drain = nil
        steps.append("drained")
        // A drain doesn't wait for an operation that counts as lost, which may still write.
        if !losesOperations { judge(result) }
        stage.start { [process] in await process.resume() }
    }

    /// Whether a drain has told the truth.
    private func judge(_ result: DrainResult) {
        guard !isLost else { return }
        if result.isComplete { judgeStore("drained") }
        if result.hasEnded, !result.unsaved.isEmpty, result.unsaved.map(\.token?.refreshToken) != [expected] {
            note("drain couldn't save \(result.unsaved), and the server has \(expected ?? "nothing")")
        }
    }

    private func judgeStore(_ moment: String) {
        let stored = surroundings.store.grant, isDamaged = surroundings.store.isDamaged
        guard stored != expected || isDamaged && !surroundings.facts.withLock({ $0.mayBeDamaged }) else { return }
        note("\(moment), the store has \(isDamaged ? "damage" : stored ?? "nothing"), and the server \(expected ?? "nothing")")
    }

    /// Lets the store and the server heal; then the store must get what the server has.
    private mutating func end() {
        steps.append("end")
        surroundings.store.turn(.fair)
        surroundings.facts.withLock { ($0.latency, $0.fails) = (.zero, false) }
        // An operation that counts as lost may write as long as it runs.
        if losesOperations { advance(by: 240) }
        check()
        if random.below(2) == 0 {
            // What a caller does after the longest pause is enough.
            for _ in 1...4 {
                advance(by: 61)
                call()
                check()
            }
        }
        drain = nil
        startDrain(within: 300)
        for _ in 0..<310 where drain != nil {
            advance(by: 1)
            check()
        }
        guard drain == nil else { return note("the drain doesn't end") }
        if !isLost { judgeStore("in the end") }
        kill()
        if surroundings.facts.withLock({ $0.needsSignIn }) || isLost { signIn() }
        if form == .shared {
            // A killed process's mark is respected for two minutes; the next process watches the store until then.
            for pause in [200, 20] {
                call()
                advance(by: pause)
            }
        }
        for _ in 1...2 {
            call()
            guard callers.last?.player.value != nil else { return note("after a restart a caller gets no token") }
            check()
            advance(by: 601)
        }
    }
}

extension StoreStorm.Surroundings.Facts {
    fileprivate mutating func note(_ token: AccessToken, of session: Int) {
        sessions[token.value] = session
        guard let grant = token.refreshToken else { return }
        (sessions[grant], current[session]) = (session, grant)
    }
}
