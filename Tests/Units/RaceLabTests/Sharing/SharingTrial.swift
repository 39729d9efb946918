import AccessTokens
import AccessTokensSharing
import Foundation
import Interleavings
import TokenServiceConcurrency

/// Three processes, one grant and a strict server, in virtual time, with a fault in one of twenty refreshes.
final class SharingTrial: Sendable {
    /// The kinds of faults.
    enum Trouble: CaseIterable {
        case none, pause, longPause, kill, killWithGrace

        /// How long the server accepts the last used refresh token again.
        var grace: Duration? { self == .killWithGrace ? .seconds(30) : nil }

        fileprivate var kind: TrialProcess.Fault.Kind? {
            switch self {
            case .none: nil
            case .pause: .pause(.seconds(45))
            case .longPause: .pause(.seconds(600))
            case .kill, .killWithGrace: .kill
            }
        }
    }

    struct Refused: TokenLoadFailure {
        var remedy: TokenServiceError.Remedy { .signIn }
    }

    /// The file's contents, for all designs except ours.
    struct FileToken: Sendable {
        let number: Int
        let end: VirtualClock.Instant
    }

    private struct State {
        var ledger = StrictLedger()
        var sessionsLost = 0
        var needsSignIn = false
        var lock: (owner: Int32, end: VirtualClock.Instant)?
        var random: SplitMix64
        var processes: [TrialProcess] = []
        var hasEnded = false
        /// The last used refresh token, and until when the server accepts it again.
        var graced: (token: Int, end: VirtualClock.Instant)?
        var deaths = 0
        var refreshes = 0
    }

    static let processes = 3
    static let lifetime = Duration.seconds(60)
    /// One of this many refreshes has a fault.
    static let faultRate = 20

    let simulation: Simulation
    let file: Lock<FileToken>
    let record = InMemorySharedTokenStore()
    let trouble: Trouble
    private let state: Lock<State>

    private init(_ trouble: Trouble, seed: UInt64, simulation: Simulation) {
        self.trouble = trouble
        self.simulation = simulation
        file = Lock(FileToken(number: 0, end: simulation.clock.now))
        state = Lock(State(random: SplitMix64(seed: seed)))
    }

    /// Returns how many sessions a design loses.
    static func run(_ design: SharingDesign, _ trouble: Trouble, rotations: Int, seed: UInt64) async throws -> Int {
        let lost = Lock(0)
        _ = try await explore(.random(schedules: 1, seed: seed), time: .whenIdle, stepLimit: 100_000_000) { simulation in
            let trial = SharingTrial(trouble, seed: seed, simulation: simulation)
            let count = try await trial.run(design, rotations: rotations)
            lost.withLock { $0 = count }
        }
        return lost.withLock { $0 }
    }

    private func run(_ design: SharingDesign, rotations: Int) async throws -> Int {
        let owner = TokenService(
            sharedStore: record, environment: environment(of: nil), loader: { _ in throw CancellationError() })
        try await signIn(owner)
        for _ in 0..<Self.processes { launch(design) }
        while state.withLock({ $0.ledger.rotations }) < rotations {
            try await simulation.clock.sleep(for: .seconds(5))
            if state.withLock({ $0.needsSignIn }) { try await signIn(owner) }
            let deaths = state.withLock { state in
                defer { state.deaths = 0 }
                return state.deaths
            }
            for _ in 0..<deaths { launch(design) }
        }
        return state.withLock { state in
            state.hasEnded = true
            return state.sessionsLost
        }
    }

    private func signIn(_ owner: TokenService) async throws {
        let number = state.withLock { state in
            state.needsSignIn = false
            return state.ledger.signIn()
        }
        file.withLock { [end = simulation.clock.now.advanced(by: Self.lifetime)] in $0 = FileToken(number: number, end: end) }
        if let failure = await owner.replace(with: token(number)).storeFailure { throw failure }
    }

    /// Starts a process that asks for a token every 5 to 15 s.
    private func launch(_ design: SharingDesign) {
        let process = state.withLock { [simulation] state in
            let process = TrialProcess(number: Int32(state.processes.count + 1), simulation: simulation)
            state.processes.append(process)
            return process
        }
        simulation.spawn("process \(process.number)") { [self] in
            let client = design.makeClient(of: process, in: self)
            while state.withLock({ !$0.hasEnded }), !process.isDead {
                do {
                    try await client.ask()
                } catch is Refused {
                    noteRefusal()
                } catch {}
                try? await simulation.clock.sleep(for: .milliseconds(5_000 + random(below: 10_000)))
            }
            state.withLock { $0.deaths += 1 }
        }
    }

    private func random(below bound: Int) -> Int { state.withLock { $0.random.below(bound) } }

    /// A process was told to sign in again: if the session still exists at the server, the client has lost it.
    private func noteRefusal() {
        state.withLock { state in
            guard !state.needsSignIn, !state.ledger.hasEnded else { return }
            state.needsSignIn = true
            state.sessionsLost += 1
        }
    }

    // MARK: Functions for processes

    func token(_ number: Int) -> AccessToken {
        AccessToken("access-\(number)", lifetime: Self.lifetime, refreshToken: "refresh-\(number)")
    }

    func environment(of process: TrialProcess?) -> TokenService.Environment {
        let clock = simulation.clock
        let wallClock = { @Sendable in Date(timeIntervalSinceReferenceDate: clock.now.offset / .seconds(1)) }
        let executor = simulation.taskExecutor
        guard let process else { return .driven(by: executor, clock: clock, wallClock: wallClock, seed: 0) }
        return .driven(
            by: executor, clock: ProcessClock(process: process), wallClock: wallClock, seed: UInt64(process.number))
    }

    /// Whether the token in the file is valid, with a tenth of its lifetime in reserve.
    var isFileFresh: Bool {
        simulation.clock.now.duration(to: file.withLock { $0.end }) > Self.lifetime / 10
    }

    /// Whether a process is running, as a lock on the process's own file would show.
    func isRunning(_ holder: String) -> Bool? {
        state.withLock { $0.processes }.first { "\($0.number)" == holder }.map { !$0.isDead }
    }

    func takeLock(_ process: Int32, for limit: Duration) -> Bool {
        let now = simulation.clock.now
        return state.withLock { state in
            if let lock = state.lock, lock.owner != process, now < lock.end { return false }
            state.lock = (process, now.advanced(by: limit))
            return true
        }
    }

    /// A dead process releases nothing.
    func releaseLock(_ process: TrialProcess) {
        guard !process.isDead else { return }
        state.withLock { if $0.lock?.owner == process.number { $0.lock = nil } }
    }

    func nextFault() -> TrialProcess.Fault? {
        state.withLock { state in
            state.refreshes += 1
            let (turn, rest) = state.refreshes.quotientAndRemainder(dividingBy: Self.faultRate)
            guard let kind = trouble.kind, rest == 0 else { return nil }
            // In turn, so that each design has equally many faults of each kind.
            let places = TrialProcess.Fault.Place.allCases
            return .init(kind: kind, place: places[turn % places.count])
        }
    }

    /// Presents a refresh token; `nil`: it was refused.
    func exchange(_ token: Int, by process: TrialProcess, _ fault: TrialProcess.Fault?) async throws -> FileToken? {
        try await process.sleep(.milliseconds(100))
        let now = simulation.clock.now
        let answer = state.withLock { state in
            if let graced = state.graced, graced.token == token, now < graced.end, !state.ledger.hasEnded {
                return StrictLedger.Answer.issued(state.ledger.newest)
            }
            let answer = state.ledger.present(token, by: process.number)
            if case .issued = answer { state.graced = trouble.grace.map { (token, now.advanced(by: $0)) } }
            if case .reused = answer {
                state.sessionsLost += 1
                state.needsSignIn = true
            }
            return answer
        }
        let end = now.advanced(by: Self.lifetime)
        try await process.meet(fault, at: .beforeAnswer)
        try await process.sleep(.milliseconds(100))
        guard case .issued(let number) = answer else { return nil }
        return FileToken(number: number, end: end)
    }
}
