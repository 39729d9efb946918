import AccessTokens
import AccessTokensSharing
import Interleavings
import TokenServiceConcurrency

/// A way for several processes to use one rotating refresh token.
enum SharingDesign: CaseIterable {
    /// Reads the file, refreshes, and writes the file.
    case naive
    /// The same, with a lock around the write.
    case writeLock
    /// A lock around reading, refreshing and writing, which expires if its holder is silent.
    case expiringLock
    /// Mark, present, save by compare-and-swap.
    case tokenService
    /// The same with a transport that checks the time when it has a connection.
    case askingService

    var name: String {
        switch self {
        case .naive: "read, refresh, write"
        case .writeLock: "lock round the write"
        case .expiringLock: "30 s lock round all"
        case .tokenService: "TokenService"
        case .askingService: "TokenService, late check"
        }
    }

    func makeClient(of process: TrialProcess, in trial: SharingTrial) -> any SharingClient {
        switch self {
        case .naive: FileClient(process: process, trial: trial, lock: .none)
        case .writeLock: FileClient(process: process, trial: trial, lock: .write)
        case .expiringLock: FileClient(process: process, trial: trial, lock: .expiring)
        case .tokenService: ServiceClient(of: process, in: trial, asksLast: false)
        case .askingService: ServiceClient(of: process, in: trial, asksLast: true)
        }
    }
}

/// A process's source of tokens.
protocol SharingClient: Sendable {
    /// Makes sure that there is a valid token.
    func ask() async throws
}

/// A client that keeps the token in a file, with one kind of lock or another: all compared designs except ours.
struct FileClient: SharingClient {
    enum Locking { case none, write, expiring }

    /// As long as such locks usually are, and longer than an exchange.
    static let lockLimit = Duration.seconds(30)

    let process: TrialProcess
    let trial: SharingTrial
    let lock: Locking

    /// The refused token is outdated: the file now has another one.
    private struct Stale: Error {}

    func ask() async throws {
        try await process.access()
        if trial.isFileFresh { return }
        guard lock == .expiring else { return try await refresh() }
        while !trial.takeLock(process.number, for: Self.lockLimit) { try await process.sleep(.milliseconds(500)) }
        defer { trial.releaseLock(process) }
        // Another process may have refreshed while this one waited.
        try await process.access()
        if !trial.isFileFresh { try await refresh() }
    }

    private func refresh() async throws {
        let token = trial.file.withLock { $0 }
        let fault = trial.nextFault()
        try await process.meet(fault, at: .beforeRequest)
        let next = try await trial.exchange(token.number, by: process, fault)
        try await process.meet(fault, at: .beforeSave)
        guard let next else {
            if trial.file.withLock({ $0.number }) != token.number { throw Stale() }
            throw SharingTrial.Refused()
        }
        if lock == .write {
            while !trial.takeLock(process.number, for: Self.lockLimit) { try await process.sleep(.milliseconds(500)) }
        }
        try await process.access()
        trial.file.withLock { $0 = next }
        if lock == .write { trial.releaseLock(process) }
    }
}

/// The real `TokenService`.
struct ServiceClient: SharingClient {
    private let tokens: TokenService

    init(of process: TrialProcess, in trial: SharingTrial, asksLast: Bool) {
        let faults = FaultLine()
        tokens = TokenService(
            sharedStore: SimulatedStore(process: process, trial: trial, faults: faults),
            sharing: TokenSharing(serverGrace: trial.trouble.grace),
            environment: trial.environment(of: process),
            loader: SimulatedLoader(process: process, trial: trial, faults: faults, asksLast: asksLast))
    }

    func ask() async throws {
        do {
            _ = try await tokens.retrieveToken()
        } catch let error as TokenServiceError where error.remedy == .signIn {
            // As after a person's sign-in; until then the server refuses it again.
            await tokens.retryNow()
            throw SharingTrial.Refused()
        }
    }
}
