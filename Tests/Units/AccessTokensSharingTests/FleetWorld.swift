@testable import AccessTokens
@testable import AccessTokensSharing

/// A state of the walk: several processes, each with one flight after another, their shared record, and the server.
struct FleetWorld: Hashable {
    /// The most faults that may happen, each at any step.
    struct Faults: Hashable, CustomStringConvertible {
        var crashes = 0, freezes = 0, lostMessages = 0, lostSwaps = 0, signOuts = 0
        /// A request is given up while it is under way; the next user signs in right after a sign-out.
        var timeOuts = 0, changes = 0

        var description: String {
            let counts = [(crashes, "crash"), (freezes, "freeze"), (lostMessages, "lost answer"), (lostSwaps, "lost swap")]
            return (counts + [(signOuts, "sign-out"), (timeOuts, "time-out"), (changes, "change of user")]).filter { $0.0 > 0 }
                .map { "\($0.0) \($0.1)" }.joined(separator: ", ")
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

    /// A request that its process has given up.
    struct Request: Hashable { let process: Int, token: Int }

    /// The processes' knowledge of the server and of each other.
    struct Facts: Hashable {
        /// The grace period that is passed to the services.
        var grace: Duration?
        /// Whether the store knows which processes have died.
        var isDeathKnown = false
        /// A process that the server always refuses, because its client id is wrong.
        var misfit: Int?
        /// Whether that process starts again for each flight, as a new service without any knowledge.
        var isMisfitRestarted = false
        /// Whether requests may be sent and arrive as late as their mark allows.
        var isSlow = false
    }

    struct Process: Hashable {
        var flight: SharedFlight
        var step = SharedFlight.Step.read
        var exchange = Exchange.none
        var now = Duration.zero
        /// When its last mark was written, and its limit.
        var marked = Duration.zero, limit = Duration.zero
        var flights: Int
        var isFrozen = false, isDead = false
        /// The token that it has received and not yet saved.
        var held: Int?
        /// The marks that it has to withdraw, in parallel with its next flight.
        var strays: [StrayMark] = []
        /// Whose session the flight has read first.
        var user: Int?

        var hasEnded: Bool { if case .end = step { flights == 0 } else { false } }
        var isDone: Bool { isDead || hasEnded && strays.isEmpty }
    }

    let facts: Facts
    var faults: Faults
    var server: Server
    var processes: [Process]
    var record: GrantRecord
    var revision = 0
    var isSignedOut = false
    var underWay: [Request] = []
    /// The tokens that were lost between the server's rotation and the save: their holder died, or lost the answer.
    var lost = Tokens()
    /// The tokens whose holder was stopped for longer than the doubt, so that another process may have presented them again.
    var doubted = Tokens()
    /// The tokens of requests that arrived although nobody could receive the answer any more: had all others waited until then,
    /// the next token would have been lost instead.
    var orphaned = Tokens()
    /// Swaps with an unknown outcome that may still take effect.
    var late: [Late] = []
    /// Whether a mark may remain: its holder died.
    var mayKeepMark = false
    /// The broken promise, if one was broken.
    var violation: String?

    /// A wall clock that stands still: the first token has expired, and each new one is valid.
    static let wall = 1_000_000.0

    static func token(_ number: Int) -> AccessToken {
        AccessToken("a\(number)", lifetime: .seconds(3600), refreshToken: "\(number)")
    }

    init(
        _ kind: ServerKind, lasting grace: Duration = Server.grace, processes: Int, flights: Int, faults: Faults,
        facts: Facts = Facts()
    ) {
        (server, self.faults, self.facts) = (Server(kind, grace: grace), faults, facts)
        self.processes = (0..<processes).map {
            Process(flight: SharedFlight(.init(owner: "\($0)", serverGrace: facts.grace)), flights: flights - 1)
        }
        record = GrantRecord(write: "first", generation: 0, token: Self.token(0), received: 0)
    }

    /// Whether a process may present this token although it was used, or end up with it: the next token was lost, an orphaned
    /// request used it, or the process that had marked it was doubted.
    private func hasReason(_ number: Int) -> Bool {
        lost.contains(number + 1) || orphaned.contains(number) || doubted.contains(number)
    }

    /// The process whose service an owner is.
    private static func process(_ owner: String) -> Int? { Int(owner.prefix { $0 != "." }) }

    private func sighting(_ index: Int) -> SharedFlight.Sighting {
        let holder = facts.isDeathKnown ? record.mark.flatMap { Self.process($0.owner) } : nil
        return .init(record: record, revision: .init("\(revision)"), isHolderRunning: holder.map { !processes[$0].isDead })
    }

    /// Advances a process's clock, and the server's with it, unless a request or another holder is active: neither takes that
    /// long.
    private mutating func pass(_ time: Duration, _ index: Int) {
        processes[index].now += time
        let isWireBusy = processes.contains { if case .sent = $0.exchange { true } else { false } }
        if underWay.isEmpty, !isWireBusy, !isAnotherAtWork(index) { server.pass(time) }
    }

    /// How long a slow process's request may still take to be sent and to arrive.
    private func delay(_ index: Int) -> Duration {
        let process = processes[index]
        guard facts.isSlow, case .load = process.step else { return .zero }
        switch process.exchange {
        case .none, .sent: return process.marked + process.limit - process.now
        case .answered: return .zero
        }
    }

    /// Lets the time pass for all, until a slow process's request arrives at the last moment.
    private mutating func dawdle(_ index: Int) { elapse(delay(index) - .milliseconds(1)) }

    /// Whether all living processes wait, or have slow requests, so that time can pass.
    private var isQuiet: Bool {
        processes.indices.allSatisfy { index in
            switch processes[index].step {
            case .wait, .end: true
            case .load: processes[index].isDead || delay(index) > .zero
            default: processes[index].isDead
            }
        }
    }

    private mutating func elapse(_ time: Duration) {
        for index in processes.indices { processes[index].now += time }
        server.pass(time)
    }

    /// Whether a process that is neither stopped nor dead asks the server or writes to the store.
    private func isAtWork(_ index: Int) -> Bool {
        if processes[index].isDead || processes[index].isFrozen { return false }
        return switch processes[index].step {
        case .load, .swap: true
        default: false
        }
    }

    /// Whether the record has another process's mark, and that process is neither stopped nor done.
    private func isAnotherAtWork(_ index: Int) -> Bool {
        guard let holder = record.mark.flatMap({ Self.process($0.owner) }), holder != index else { return false }
        if case .end = processes[holder].step { return false }
        return !processes[holder].isDead && !processes[holder].isFrozen
    }

    /// Wakes a process after any time that matters, but before an active holder is done, unless the process has an operation
    /// under way itself.
    private mutating func thaw(_ index: Int) {
        processes[index].isFrozen = false
        let isIdle =
            switch processes[index].step {
            case .read, .wait, .end: true
            default: false
            }
        // A dead process's request doesn't take that long to arrive either.
        let isOneLeft = !underWay.isEmpty || processes.contains { if $0.isDead, case .sent = $0.exchange { true } else { false } }
        if !isOneLeft, !isIdle || !isAnotherAtWork(index) { pass(.seconds(10_000), index) }
    }

    // MARK: Steps

    private func after(_ change: (inout FleetWorld) -> Void) -> FleetWorld {
        var world = self
        change(&world)
        return world
    }

    /// Returns the world after a fault, if another one is allowed.
    private func after(_ fault: WritableKeyPath<Faults, Int>, _ change: (inout FleetWorld) -> Void) -> [FleetWorld] {
        guard faults[keyPath: fault] > 0 else { return [] }
        return [
            after { world in
                world.faults[keyPath: fault] -= 1
                change(&world)
            }
        ]
    }

    /// The possible next events.
    func successors() -> [FleetWorld] {
        var worlds: [FleetWorld] = []
        for (index, process) in processes.enumerated() {
            if case .sent(let token) = process.exchange { worlds.append(after { $0.serve(index, token) }) }
            if process.isDone { continue }
            if process.isFrozen {
                worlds.append(after { $0.thaw(index) })
                continue
            }
            worlds += after(\.crashes) { $0.crash(index) } + after(\.freezes) { $0.processes[index].isFrozen = true }
            if delay(index) > .seconds(1), isQuiet { worlds.append(after { $0.dawdle(index) }) }
            if let stray = process.strays.first { worlds.append(after { $0.takeBack(stray, index) }) }
            worlds += proceed(index, process)
        }
        // A request that nobody waits for may also never arrive.
        worlds += processes.indices.filter { isOrphan($0) }.map { index in after { $0.processes[index].exchange = .none } }
        for request in underWay {
            worlds += [after { $0.serve(request) }, after { $0.underWay.removeAll { $0 == request } }]
        }
        worlds += after(\.signOuts) { $0.signOut() } + after(\.changes) { $0.changeUser() }
        for swap in late where swap.base == .init("\(revision)") {
            worlds.append(
                after { world in
                    world.late.removeAll { $0 == swap }
                    world.put(swap.record)
                })
        }
        return worlds
    }

    private func proceed(_ index: Int, _ process: Process) -> [FleetWorld] {
        switch process.step {
        case .read:
            [
                after { world in
                    if process.user == nil { world.processes[index].user = world.number.map { $0 / Server.user } }
                    world.take(.read(world.sighting(index)), index)
                }
            ]
        case .swap(let record, let base):
            [after { $0.swap(record, base, index, isAnswered: true) }]
                + after(\.lostSwaps) { $0.swap(record, base, index, isAnswered: false) }
                + after(\.lostSwaps) { $0.take(.storeFailed(Self.storeDown), index) }
                + after(\.lostSwaps) { world in
                    world.late.append(Late(record: record, base: base))
                    world.take(.storeFailed(Self.storeDown), index)
                }
        case .pause: [after { $0.take(.waited, index) }]
        case .wait(let base, _) where base != .init("\(revision)"): [after { $0.take(.waited, index) }]
        case .wait(_, let rest): rest.map { waitOut(index, $0) } ?? []
        case .load(let previous): exchange(index, process, previous)
        case .end: process.flights > 0 ? [after { $0.startAgain(index) }] : []
        }
    }

    /// A doubt ends while a holder is dead, finished, stopped for longer or slow, but never before the server has received a
    /// request that must have arrived by then.
    private func waitOut(_ index: Int, _ rest: Duration) -> [FleetWorld] {
        // Checking whether the holder is still running takes no time.
        if facts.isDeathKnown, rest == RefreshPolicy.checkPause { return [after { $0.take(.waited, index) }] }
        let holder = record.mark.flatMap { Self.process($0.owner) } ?? index
        if underWay.contains(where: { $0.process == holder || $0.process == index }) { return [] }
        let other = processes[holder]
        // The holder may have failed since it took over from a slow one, whose time passes as well.
        let slow = processes.indices.filter { $0 != index && isAtWork($0) }
        if facts.isSlow, holder != index, !slow.isEmpty {
            guard isQuiet, slow.allSatisfy({ delay($0) > rest }) else { return [] }
            return [
                after { world in
                    world.elapse(rest)
                    world.take(.waited, index)
                }
            ]
        }
        let isOver = if case .end = other.step { true } else { other.isDead }
        // Its own mark: it waits for a late save, or for an earlier request.
        if holder != index {
            if case .sent = other.exchange { return [] }
            guard isOver || other.isFrozen else { return [] }
        }
        return [
            after { world in
                if holder != index, !isOver, let number = world.number { world.doubted.insert(number) }
                world.pass(rest, index)
                world.take(.waited, index)
            }
        ]
    }

    private func exchange(_ index: Int, _ process: Process, _ previous: AccessToken?) -> [FleetWorld] {
        switch process.exchange {
        case .none:
            // Signed out: the loader has nothing to present.
            guard let number = previous?.refreshToken.flatMap({ Int($0) }) else {
                return [after { $0.take(.failed(Self.refused), index) }]
            }
            if process.flight.sendingEnd.map({ $0 <= process.now }) ?? false {
                return [after { $0.take(.failed(Self.unsent), index) }]
            }
            return [after { $0.present(number, index) }]
        case .sent(let number):
            return after(\.timeOuts) { world in
                world.underWay.append(Request(process: index, token: number))
                world.receive(.failed(Self.unclear), index)
            }
        case .answered(let answer):
            let event = answer.map { .loaded(Self.token($0)) } ?? SharedFlight.Event.failed(Self.refused)
            return [after { $0.receive(event, index) }]
                + after(\.lostMessages) { world in
                    if let answer { world.lost.insert(answer) }
                    world.receive(.failed(Self.unclear), index)
                }
        }
    }

    private mutating func present(_ number: Int, _ index: Int) {
        let isOfThePast = isSignedOut || number / Server.user != server.live / Server.user
        if !isOfThePast, !doubted.contains(number) {
            let isMarked = record.mark.flatMap { Self.process($0.owner) } == index
            if !isMarked, !facts.isSlow { violation = "26: presented without the mark" }
            if !facts.isSlow, isAwaited(number) { violation = "26: presented while another process waits for its answer" }
        }
        processes[index].exchange = .sent(number)
    }

    private mutating func receive(_ event: SharedFlight.Event, _ index: Int) {
        processes[index].exchange = .none
        if case .loaded(let token) = event { processes[index].held = token.refreshToken.flatMap { Int($0) } }
        take(event, index)
    }

    /// Whether a living process waits for the answer to a request with this token that has yet to reach the server.
    private func isAwaited(_ number: Int) -> Bool { processes.contains { !$0.isDead && $0.exchange == .sent(number) } }

    /// Whether a dead process's request has yet to reach the server.
    private func isOrphan(_ index: Int) -> Bool {
        if processes[index].isDead, case .sent = processes[index].exchange { true } else { false }
    }

    private mutating func serve(_ index: Int, _ token: Int) {
        if processes[index].isDead { orphaned.insert(token) }
        let answer = index == facts.misfit ? nil : answer(to: token)
        if processes[index].isDead, let answer { lost.insert(answer) }
        processes[index].exchange = processes[index].isDead ? .none : .answered(answer)
    }

    private mutating func serve(_ request: Request) {
        underWay.removeAll { $0 == request }
        orphaned.insert(request.token)
        if request.process != facts.misfit, let answer = answer(to: request.token) { lost.insert(answer) }
    }

    private mutating func answer(to token: Int) -> Int? {
        switch server.present(token) {
        case .issued(let number), .repeated(let number): return number
        case .refused: return nil
        case .reused:
            if !hasReason(token) { violation = "26: presented twice" }
            return nil
        }
    }

    private mutating func crash(_ index: Int) {
        mayKeepMark = true
        // An answer that it has received, or a token that it hasn't saved, is lost with it.
        if case .answered(let token?) = processes[index].exchange { lost.insert(token) }
        if let token = processes[index].held, number != token { lost.insert(token) }
        processes[index].isDead = true
        if case .answered = processes[index].exchange { processes[index].exchange = .none }
    }

    /// The token in the record.
    private var number: Int? { record.token?.refreshToken.flatMap { Int($0) } }

    private mutating func swap(_ next: GrantRecord, _ base: SharedRecord.Revision?, _ index: Int, isAnswered: Bool) {
        guard base == .init("\(revision)") else {
            return take(isAnswered ? .conflict(sighting(index)) : .storeFailed(Self.storeDown), index)
        }
        put(next)
        if let mark = next.mark, Self.process(mark.owner) == index {
            (processes[index].marked, processes[index].limit) = (processes[index].now, mark.limit)
        }
        take(isAnswered ? .swapped(.init("\(revision)")) : .storeFailed(Self.storeDown), index)
    }

    private mutating func put(_ next: GrantRecord) {
        if next.generation < record.generation { violation = "34: a generation goes back" }
        record = next
        revision += 1
    }

    /// Reads and swaps, until no other swap comes in between.
    private mutating func takeBack(_ stray: StrayMark, _ index: Int) {
        processes[index].strays.removeFirst()
        if case .swap(let record, _)? = stray.remedy(for: sighting(index)) { put(record) }
    }

    private mutating func signOut() {
        isSignedOut = true
        var next = GrantRecord(write: "sign-out", generation: record.generation + 1)
        (next.fence, next.signedOut) = ("sign-out", next.generation)
        put(next)
    }

    /// A user signs out and another one signs in, with nothing in between.
    private mutating func changeUser() {
        server.signIn()
        var next = GrantRecord(
            write: "sign-in", generation: record.generation + 2, token: Self.token(server.live), received: Self.wall)
        (next.fence, next.signedOut) = ("sign-in", next.generation - 1)
        put(next)
    }

    private mutating func take(_ event: SharedFlight.Event, _ index: Int) {
        let moment = SharedFlight.Moment(now: processes[index].now, wall: Self.wall)
        processes[index].step = processes[index].flight.next(event, at: moment)
        guard case .end(let ending) = processes[index].step else { return }
        let hasLoaded = processes[index].held != nil
        processes[index].held = nil
        if let stray = ending.stray { processes[index].strays.append(stray) }
        switch ending.outcome {
        case .token(let token, _, let isAdopted):
            if !isAdopted, record.token != token, !isSignedOut, record.generation == processes[index].flight.knowledge.generation
            {
                violation = "28: handed out unsaved"
            }
            let user = token.refreshToken.flatMap { Int($0) }.map { $0 / Server.user }
            if let own = processes[index].user, own != user { violation = "34: another user's token" }
        case .failed(let failure):
            let isOwnFault = index == facts.misfit || isSignedOut || isLostForAReason
            if failure.error.remedy == .signIn, !isOwnFault { violation = "29: a false sign-out" }
        // Unless its token came too late.
        case .gaveUp where hasLoaded: break
        case .gaveUp, .newGrant, .loaded, .saved, .found, .overdue: violation = "39: given up while a caller waits"
        case .signedOut: if !isSignedOut, server.live < Server.user { violation = "34: signed out by nobody" }
        }
    }

    private mutating func startAgain(_ index: Int) {
        processes[index].flights -= 1
        let isNew = facts.isMisfitRestarted && index == facts.misfit
        let owner = isNew ? "\(index).\(processes[index].flights)" : "\(index)"
        let setting = SharedFlight.Setting(owner: owner, serverGrace: facts.grace)
        processes[index].flight = SharedFlight(setting, knowing: isNew ? .init() : processes[index].flight.knowledge)
        let moment = SharedFlight.Moment(now: processes[index].now, wall: Self.wall)
        (processes[index].step, processes[index].user) = (processes[index].flight.begin(at: moment), nil)
    }

    // MARK: The end

    /// The session's state when nothing more can happen.
    enum Fate: Hashable { case kept, signedOut, lostAndExplained, violated(String) }

    var fate: Fate? {
        if let violation { return .violated(violation) }
        let isQuiet = processes.allSatisfy { process in
            if case .sent = process.exchange { return false }
            return process.isDone
        }
        guard isQuiet, underWay.isEmpty else { return nil }
        if isSignedOut { return record.isTombstone ? .signedOut : .violated("34: a late save brought a token back") }
        if record.mark != nil, !mayKeepMark { return .violated("39: a mark without a purpose stays") }
        // Within a grace period the next process presents the token in time.
        if !server.isRevoked, number == server.live || number == server.parent { return .kept }
        return isLostForAReason ? .lostAndExplained : .violated("30: a session lost without a reason")
    }

    /// Whether the record's token is used up for a known reason; revocations by a strict server are checked when they happen.
    private var isLostForAReason: Bool { server.isRevoked || number.map { hasReason($0) } ?? false }

    private static let refused = FlightFailure(error: TokenServiceError(.loadFailed, remedy: .signIn), isDefinite: true)
    private static let unclear = FlightFailure(error: TokenServiceError(.loadFailed), isDefinite: false)
    private static let unsent = FlightFailure(
        error: TokenServiceError(.loadFailed), isDefinite: true, isUnsent: true)
    private static let storeDown = FlightFailure.store(StoreTimeout())
}
