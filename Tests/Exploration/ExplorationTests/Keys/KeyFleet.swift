import AccessTokens
import AccessTokensKeys
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Interleavings
import TokenServiceConcurrency

/// An authorization server that ends a key's session when a refresh token is presented twice, the records that processes share,
/// and the answers that they got.
final class KeyFleet: Sendable {
    struct Session: Sendable {
        var live = 0
        var issued = 0
        /// The process that got the valid token; `nil`: a sign-in.
        var receiver: Int?
        /// Whether it has ended for the reason that guarantee 30 names.
        var isLost = false
    }

    struct State: Sendable {
        var sessions: [AccountKey: Session] = [:]
        var killed: Set<Int> = []
        /// Whether a sign-out of account a has begun, and when the first one had reached all records.
        var isSigningOut = false
        var signedOut: Duration?
        /// The processes in which such a sign-out has returned.
        var fenced: Set<Int> = []
        var problems: [String] = []
    }

    private struct Client: TokenLoader {
        let fleet: KeyFleet
        let key: AccountKey
        let process: Int

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            try await fleet.exchange(previous, of: key, for: process)
        }
    }

    static let keys = Array(AccountKey.all.prefix(3))
    static let lifetime = Duration.seconds(600)

    let simulation: Simulation
    let state = Lock(State())
    let exchanges = ExchangeCounter()
    private let stores: KeyFleetStores

    init(_ simulation: Simulation) {
        self.simulation = simulation
        stores = KeyFleetStores(clock: simulation.clock)
    }

    /// The services of one process.
    func services(of process: Int, keepingIdle limit: Int, checkEvery: Duration?) -> TokenServices<AccountKey> {
        let wallClock = { @Sendable [clock = simulation.clock] in
            Date(timeIntervalSinceReferenceDate: clock.now.offset / .seconds(1))
        }
        return TokenServices(
            keepingIdle: limit, sharedStores: stores, sharing: TokenSharing(checkEvery: checkEvery),
            environment: .driven(by: simulation.taskExecutor, clock: simulation.clock, wallClock: wallClock, seed: 1),
            loader: { Client(fleet: self, key: $0, process: process) })
    }

    // MARK: The server

    private static func token(_ key: AccountKey, _ number: Int) -> AccessToken {
        AccessToken("\(key)-\(number)", lifetime: lifetime, refreshToken: "\(key)-\(number)")
    }

    func signIn(_ key: AccountKey) -> AccessToken {
        state.withLock { state in
            state.sessions[key] = Session(live: 1, issued: 1)
            return Self.token(key, 1)
        }
    }

    @concurrent private func exchange(_ previous: AccessToken?, of key: AccountKey, for process: Int) async throws -> AccessToken
    {
        exchanges.begin()
        try? await simulation.clock.sleep(for: .seconds(1))
        let token = state.withLock { state -> AccessToken? in
            guard let spent = previous?.refreshToken, var session = state.sessions[key] else { return nil }
            guard spent.hasPrefix("\(key)-") else {
                state.problems.append("\(key) presents \(spent)")
                return nil
            }
            if spent != "\(key)-\(session.live)" {
                if isUnsaved(session, of: key, state) { session.isLost = true }
                if !session.isLost { state.problems.append("\(spent) is presented twice: the session is lost") }
                state.sessions[key] = session
                return nil
            }
            session.issued += 1
            (session.live, session.receiver) = (session.issued, process)
            state.sessions[key] = session
            return Self.token(key, session.live)
        }
        try? await simulation.clock.sleep(for: .seconds(1))
        guard let token else { throw LoadFailure(remedy: .signIn) }
        return token
    }

    /// Guarantee 30: the process that got the valid token was killed before it had saved the token.
    private func isUnsaved(_ session: Session, of key: AccountKey, _ state: State) -> Bool {
        guard let receiver = session.receiver, state.killed.contains(receiver) else { return false }
        return !stores.record(of: key).contains("\"\(key)-\(session.live)\"")
    }

    // MARK: The processes

    @discardableResult
    func ask(_ services: TokenServices<AccountKey>, _ key: AccountKey, in process: Int) async -> AccessToken? {
        let began = simulation.clock.now.offset
        let wasFenced = state.withLock { key.account == "a" && $0.fenced.contains(process) }
        guard let token = try? await services[key].retrieveToken() else { return nil }
        state.withLock { state in
            if !token.value.hasPrefix("\(key)-") { state.problems.append("\(key) got \(token.value)") }
            // No service keeps a token beyond its lifetime, or after its own sign-out.
            let isTooLate = state.signedOut.map { began > $0 + Self.lifetime } ?? false
            if key.account == "a", wasFenced || isTooLate {
                state.problems.append("process \(process + 1) got \(token.value) after the sign-out")
            }
        }
        return token
    }

    /// Signs account a out.
    func signOut(_ services: TokenServices<AccountKey>, in process: Int) async {
        state.withLock { $0.isSigningOut = true }
        let change = await services.reset { $0.account == "a" }
        let isComplete = change.storeFailure == nil && change.changes.values.allSatisfy { $0.storeFailure == nil }
        state.withLock { state in
            state.fenced.insert(process)
            if isComplete { state.signedOut = state.signedOut ?? simulation.clock.now.offset }
        }
    }
}

/// A simulated store for each key.
private final class KeyFleetStores: SharedTokenStores {
    private let clock: any Clock<Duration>
    private let stores = Lock<[AccountKey: SimulatedSharedStore]>([:])

    init(clock: any Clock<Duration>) {
        self.clock = clock
    }

    private func simulated(_ key: AccountKey) -> SimulatedSharedStore {
        stores.withLock { stores in
            let store = stores[key] ?? SimulatedSharedStore(clock: clock)
            stores[key] = store
            return store
        }
    }

    func store(for key: AccountKey) -> any SharedTokenStore { simulated(key) }

    @concurrent func forEachStoredKey(_ body: @escaping @Sendable (AccountKey) -> Void) async {
        stores.withLock { $0 }.filter { $0.value.contents != nil }.keys.sorted { "\($0)" < "\($1)" }.forEach(body)
    }

    func record(of key: AccountKey) -> String {
        simulated(key).contents.map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
    }
}
