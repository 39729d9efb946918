@testable import AccessTokens
@testable import AccessTokensSharing

/// Several processes with one flight after another each, the record that they share, and the server: a state of the walk.
struct FleetWorld: Hashable {
    enum ServerKind: Hashable, CaseIterable {
        /// A token that is presented again ends the session.
        case strict
        /// It is refused.
        case soft
        /// The one presented last is answered again.
        case grace
    }

    /// What goes wrong at most, each at any step.
    struct Faults: Hashable, CustomStringConvertible {
        var crashes = 0, freezes = 0, lostMessages = 0, lostSwaps = 0, signOuts = 0

        var description: String {
            let counts = [(crashes, "crash"), (freezes, "freeze"), (lostMessages, "lost answer"), (lostSwaps, "lost swap")]
            return (counts + [(signOuts, "sign-out")]).filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        }
    }

    struct Tokens: Hashable {
        private var bits: UInt64 = 0

        mutating func insert(_ number: Int) { bits |= 1 << UInt64(number) }
        func contains(_ number: Int) -> Bool { bits & 1 << UInt64(number) != 0 }
    }

    struct Late: Hashable {
        let record: GrantRecord
        let base: SharedRecord.Revision?
    }

    enum Exchange: Hashable {
        case none
        case sent(Int)
        case answered(Int?)
    }

    struct Process: Hashable {
        var flight: SharedFlight
        var step = SharedFlight.Step.read
        var exchange = Exchange.none
        var now = Duration.zero
        var flights: Int
        var isFrozen = false, isDead = false
        /// The token that it has received and not yet saved.
        var held: Int?
        /// The marks that it has to take back, beside its next flight.
        var strays: [StrayMark] = []

        var hasEnded: Bool { if case .end = step { flights == 0 } else { false } }
        var isDone: Bool { isDead || hasEnded && strays.isEmpty }
    }

    let kind: ServerKind
    var faults: Faults
    var processes: [Process]
    var record: GrantRecord
    var revision = 0
    /// The refresh token that the server expects, the one before, and whether it has ended the session.
    var live = 0, parent: Int?, isRevoked = false
    var isSignedOut = false
    /// The tokens that were lost between the server's rotation and the save: their holder died, or lost the answer.
    var lost = Tokens()
    /// The tokens whose holder was stopped for longer than the doubt, so that another may have presented them once more.
    var doubted = Tokens()
    /// Swaps of which nothing is known and that may yet take effect.
    var late: [Late] = []
    /// Whether a mark may stay: its holder died, or the server may still be working on its request.
    var mayKeepMark = false
    /// What a promise says must not be.
    var violation: String?

    /// A wall clock that stands still: the first token has expired, each new one is fresh.
    static let wall = 1_000_000.0

    static func token(_ number: Int) -> AccessToken {
        AccessToken("a\(number)", lifetime: .seconds(3600), refreshToken: "\(number)")
    }

    init(_ kind: ServerKind, processes: Int, flights: Int, faults: Faults) {
        self.kind = kind
        self.faults = faults
        self.processes = (0..<processes).map { Process(flight: SharedFlight(.init(owner: "\($0)")), flights: flights - 1) }
        record = GrantRecord(write: "first", generation: 0, token: Self.token(0), received: 0)
    }

    /// Why a used token is presented, or all that is left: the one that it was exchanged for was lost, or its holder doubted.
    private func hasReason(_ number: Int) -> Bool { lost.contains(number + 1) || doubted.contains(number) }

    private func sighting(_ index: Int) -> SharedFlight.Sighting {
        .init(record: record, revision: .init("\(revision)"))
    }

    // MARK: Steps

    /// All that can happen next.
    func successors() -> [FleetWorld] {
        var worlds: [FleetWorld] = []
        func add(_ change: (inout FleetWorld) -> Void) {
            var world = self
            change(&world)
            worlds.append(world)
        }
        for index in processes.indices {
            let process = processes[index]
            if case .sent(let token) = process.exchange { add { $0.serve(index, token) } }
            if process.isDone { continue }
            if process.isFrozen {
                // It wakes after any time that matters.
                add {
                    $0.processes[index].isFrozen = false
                    $0.processes[index].now += .seconds(10_000)
                }
                continue
            }
            if faults.crashes > 0 { add { $0.crash(index) } }
            if faults.freezes > 0 {
                add {
                    $0.faults.freezes -= 1
                    $0.processes[index].isFrozen = true
                }
            }
            if let stray = process.strays.first { add { $0.takeBack(stray, index) } }
            proceed(index, process, add)
        }
        if faults.signOuts > 0 { add { $0.signOut() } }
        for swap in late where swap.base == .init("\(revision)") {
            add { world in
                world.late.removeAll { $0 == swap }
                world.put(swap.record)
            }
        }
        return worlds
    }

    private func proceed(_ index: Int, _ process: Process, _ add: ((inout FleetWorld) -> Void) -> Void) {
        switch process.step {
        case .read: add { $0.take(.read($0.sighting(index)), index) }
        case .swap(let record, let base):
            add { $0.swap(record, base, index, isAnswered: true) }
            if faults.lostSwaps > 0 {
                add { world in
                    world.faults.lostSwaps -= 1
                    world.swap(record, base, index, isAnswered: false)
                }
                add { world in
                    world.faults.lostSwaps -= 1
                    world.take(.storeFailed(Self.storeDown), index)
                }
                add { world in
                    world.faults.lostSwaps -= 1
                    world.late.append(Late(record: record, base: base))
                    world.take(.storeFailed(Self.storeDown), index)
                }
            }
        case .pause: add { $0.take(.waited, index) }
        case .wait(let base, let rest):
            if base != .init("\(revision)") {
                add { $0.take(.waited, index) }
            } else if let rest {
                waitOut(index, rest, add)
            }
        case .load(let previous): exchange(index, process, previous, add)
        case .end: if process.flights > 0 { add { $0.startAgain(index) } }
        }
    }

    /// A doubt passes over who has died, has ended, or is stopped for longer; never over a request that the server has yet to see.
    private func waitOut(_ index: Int, _ rest: Duration, _ add: ((inout FleetWorld) -> Void) -> Void) {
        guard let holder = processes.indices.first(where: { "\($0)" == record.mark?.owner }) else { return }
        // A mark of its own that it has taken over: the time for a late save.
        if holder == index {
            return add { world in
                world.processes[index].now += rest
                world.take(.waited, index)
            }
        }
        let other = processes[holder]
        if case .sent = other.exchange { return }
        let isOver = if case .end = other.step { true } else { other.isDead }
        guard isOver || other.isFrozen else { return }
        add { world in
            if !isOver, let number = world.number { world.doubted.insert(number) }
            world.processes[index].now += rest
            world.take(.waited, index)
        }
    }

    private func exchange(
        _ index: Int, _ process: Process, _ previous: AccessToken?, _ add: ((inout FleetWorld) -> Void) -> Void
    ) {
        switch process.exchange {
        case .none:
            guard let number = previous?.refreshToken.flatMap({ Int($0) }) else {
                // Signed out: the loader has nothing to present.
                return add { $0.take(.failed(Self.refused), index) }
            }
            add { world in
                if world.record.mark?.owner != "\(index)", !world.doubted.contains(number), !world.isSignedOut {
                    world.violation = "26: presented without the mark"
                }
                world.processes[index].exchange = .sent(number)
            }
        case .sent: break
        case .answered(let answer):
            let event = answer.map { .loaded(Self.token($0)) } ?? SharedFlight.Event.failed(Self.refused)
            add { $0.receive(event, index) }
            guard faults.lostMessages > 0 else { return }
            add { world in
                world.faults.lostMessages -= 1
                if let answer { world.lost.insert(answer) }
                world.mayKeepMark = true
                world.receive(.failed(Self.unclear), index)
            }
        }
    }

    private mutating func receive(_ event: SharedFlight.Event, _ index: Int) {
        processes[index].exchange = .none
        if case .loaded(let token) = event { processes[index].held = token.refreshToken.flatMap { Int($0) } }
        take(event, index)
    }

    private mutating func serve(_ index: Int, _ token: Int) {
        processes[index].exchange = .answered(nil)
        if isRevoked { return }
        if token == live {
            (parent, live) = (live, live + 1)
            processes[index].exchange = .answered(live)
            if processes[index].isDead { lost.insert(live) }
        } else if kind == .grace, token == parent {
            processes[index].exchange = .answered(live)
        } else if kind == .strict {
            isRevoked = true
            if !hasReason(token) { violation = "26: presented twice" }
        }
        if processes[index].isDead { processes[index].exchange = .none }
    }

    private mutating func crash(_ index: Int) {
        faults.crashes -= 1
        mayKeepMark = true
        // An answer that is here, or a token that is not saved, dies with it.
        if case .answered(let token?) = processes[index].exchange { lost.insert(token) }
        if let token = processes[index].held, number != token { lost.insert(token) }
        processes[index].isDead = true
        if case .answered = processes[index].exchange { processes[index].exchange = .none }
    }

    /// The token that the record has.
    private var number: Int? { record.token?.refreshToken.flatMap { Int($0) } }

    private mutating func swap(_ next: GrantRecord, _ base: SharedRecord.Revision?, _ index: Int, isAnswered: Bool) {
        guard base == .init("\(revision)") else {
            return take(isAnswered ? .conflict(sighting(index)) : .storeFailed(Self.storeDown), index)
        }
        put(next)
        take(isAnswered ? .swapped(.init("\(revision)")) : .storeFailed(Self.storeDown), index)
    }

    private mutating func put(_ next: GrantRecord) {
        if next.generation < record.generation { violation = "34: a generation goes back" }
        record = next
        revision += 1
    }

    /// Reads and swaps, until nothing comes between.
    private mutating func takeBack(_ stray: StrayMark, _ index: Int) {
        processes[index].strays.removeFirst()
        if case .swap(let record, _)? = stray.remedy(for: sighting(index)) { put(record) }
    }

    private mutating func signOut() {
        faults.signOuts -= 1
        isSignedOut = true
        record = GrantRecord(write: "sign-out", generation: record.generation + 1)
        revision += 1
    }

    private mutating func take(_ event: SharedFlight.Event, _ index: Int) {
        let moment = SharedFlight.Moment(now: processes[index].now, wall: Self.wall)
        processes[index].step = processes[index].flight.next(event, at: moment)
        guard case .end(let ending) = processes[index].step else { return }
        processes[index].held = nil
        if let stray = ending.stray { processes[index].strays.append(stray) }
        switch ending.outcome {
        case .token(let token, _, let isAdopted):
            if !isAdopted, record.token != token, !isSignedOut, record.generation == processes[index].flight.knowledge.generation
            {
                violation = "28: handed out unsaved"
            }
        case .failed(let failure):
            if failure.error.remedy == .signIn, !isSignedOut, !isLostForAReason { violation = "29: a false sign-out" }
        case .gaveUp, .newGrant: violation = "39: given up while a caller waits"
        case .signedOut: if !isSignedOut { violation = "34: signed out by nobody" }
        }
    }

    private mutating func startAgain(_ index: Int) {
        processes[index].flights -= 1
        processes[index].flight = SharedFlight(.init(owner: "\(index)"), knowing: processes[index].flight.knowledge)
        processes[index].step = .read
    }

    // MARK: The end

    /// What became of the session when nothing more can happen.
    enum Fate: Hashable { case kept, signedOut, lostAndExplained, violated(String) }

    var fate: Fate? {
        if let violation { return .violated(violation) }
        let isQuiet = processes.allSatisfy { process in
            if case .sent = process.exchange { return false }
            return process.isDone
        }
        guard isQuiet else { return nil }
        if isSignedOut { return record.isTombstone ? .signedOut : .violated("34: a late save brought a token back") }
        if record.mark != nil, !mayKeepMark { return .violated("39: a mark without a purpose stays") }
        let isAlive = !isRevoked && (number == live || kind == .grace && number == parent)
        if isAlive { return .kept }
        if kind == .grace { return .violated("30: a session lost in spite of grace") }
        return isLostForAReason ? .lostAndExplained : .violated("30: a session lost without a reason")
    }

    /// Whether the record's token is used up and it is known why; what a strict server revokes is judged when it does.
    private var isLostForAReason: Bool { isRevoked || number.map { hasReason($0) } ?? false }

    private static let refused = SharedFlight.Failure(error: TokenServiceError(.loadFailed, remedy: .signIn), isDefinite: true)
    private static let unclear = SharedFlight.Failure(error: TokenServiceError(.loadFailed), isDefinite: false)
    private static let storeDown = SharedFlight.Failure.store(StoreTimeout())
}
