/// What a failing test guessed: it went on before others had run, and passes if it waits for them.
struct Guess: Sendable {
    /// Where the test went on, such as `CacheTests/PriceCacheTests.swift:31`.
    let place: String
    /// The wait that wasn't enough; `nil`: there was none, or it was another's event.
    let wait: Trace.Wait?
    /// The tasks that hadn't run, with their functions.
    let tasks: [String]
    /// Whether none of them had begun.
    let isUnbegun: Bool
    /// The function that made the first of them; `nil`: the test itself did.
    let maker: String?
    /// Whether the test did nothing between there and its failure that could go wrong by itself.
    let isCertain: Bool

    var sentences: String {
        let deed: String =
            switch wait {
            case .yield: "goes on after a yield"
            case .sleep: "goes on after a sleep"
            case nil: "goes on"
            }
        let names = tasks.prefix(2).joined(separator: " and ") + (tasks.count > 2 ? " and \(tasks.count - 2) more" : "")
        let end = isUnbegun ? "begun" : "ended"
        let remedy = maker.map { "what \($0) begins: let it return the task, or report the task's end" } ?? "that task's value"
        let head = isCertain ? "This test guesses: at" : "Either this test guesses, or the code is done too late: at"
        let tail =
            isCertain
            ? "Await \(remedy). If a schedule still fails then, the code is wrong."
            : "To find out, await there \(remedy). If a schedule still fails then, or if the code's callers rely on it without that"
                + " wait, the code is wrong."
        return "\(head) \(place) it \(deed), but \(names) \(tasks.count > 1 ? "have" : "has") not \(end)."
            + " If it waits there until nothing else can run, it doesn't fail. \(tail)"
    }
}

extension Exploration {
    /// The most places at which a failing test is held.
    private static let mostHolds = 16

    /// Runs a failing schedule again and holds the test before its failure until nothing else can run.
    ///
    /// If it then doesn't fail, the test went on too early. What the test did meanwhile tells whether the code can be the cause:
    /// nothing else than waiting and reading, or more.
    mutating func guess(in failing: Execution.Outcome) -> Guess? {
        guard settings.test == .trait || settings.test == .function, failing.isRepeatable, let doors = settings.doors,
            doors.namesFunctions, let walk = GuessWalk(failing, root: settings.rootName, doors)
        else { return nil }
        let didWait = hasWaited
        hasWaited = true
        defer { hasWaited = didWait }
        var (seen, hasActed, holds): (Set<UInt>, Bool, Int) = ([], false, 0)
        for index in walk.ownSteps.reversed() {
            let deed = walk.deed(at: index)
            if deed == .subject { return nil }
            if let address = failing.trace.functions[index].first, seen.insert(address).inserted {
                holds += 1
                guard holds <= Self.mostHolds else { return nil }
                if let held = hold(failing, at: failing.trace.steps[index].number) {
                    return walk.guess(held, at: index, isCertain: !hasActed && deed != .act && deed != .subjectWait)
                }
            }
            if deed == .subjectWait { return nil }
            hasActed = hasActed || deed == .act
        }
        return nil
    }

    /// Returns the trace of the schedule in which the test is held from a step on; `nil`: it fails in the same way, or another.
    private mutating func hold(_ failing: Execution.Outcome, at step: Int) -> Trace? {
        for movesTime in [false, true] {
            let hold = Replay.Hold(from: step, movesTime: movesTime)
            let held = execute(.replay(Replay(choices: failing.choices, hold: hold)), records: true)
            guard held.isRepeatable else { return nil }
            let isHeld = (held.error as? ExplorationProblem)?.code ?? .requirement == .requirement
            if isHeld, held.failureKind != failing.failureKind { return held.trace }
        }
        return nil
    }
}

/// The steps of a test that fails, from its failure back.
private struct GuessWalk {
    /// What the test does in a step.
    enum Deed {
        /// It goes on after a yield or a sleep of its own.
        case wait
        /// It reads what it expects, or polls.
        case read
        /// It calls something, or goes on after that.
        case act
        /// It is in a function of the code under test, or there after a yield or a sleep.
        case subject, subjectWait
    }

    private let trace: Trace
    private let root: String
    private let doors: any RuntimeDoors
    /// The failing expectation; empty: the test threw an error.
    private let place: String
    private let body: (name: FunctionName, file: Substring)
    /// How often the test has continued at an address.
    private let counts: [UInt: Int]
    /// The first line of each of its functions: the compiler gives it to what an expectation's macro expands to.
    private let firstLines: [String: Int]
    /// The indices of the test's steps.
    let ownSteps: [Int]

    /// Returns `nil` unless the test's own task fails.
    init?(_ failing: Execution.Outcome, root: String, _ doors: any RuntimeDoors) {
        (trace, self.root, self.doors) = (failing.trace, root, doors)
        let steps = trace.steps
        guard let last = steps.last, last.task == root,
            last.events.contains(where: { $0.kind == .failure && $0.task == root })
        else { return nil }
        place = (failing.error as? ExplorationProblem)?.place ?? ""
        ownSteps = steps.indices.filter { steps[$0].task == root && !failing.trace.functions[$0].isEmpty }
        let functions = failing.trace.functions
        counts = Dictionary(ownSteps.compactMap { functions[$0].first }.map { ($0, 1) }, uniquingKeysWith: +)
        // The type in which the expectation stands is the test's, though a closure elsewhere may have called it.
        let expecting = ownSteps.last.flatMap { [place] last in
            functions[last].lazy.compactMap { Self.outermost([$0], doors) }
                .first { Self.file($0.line) == Self.file(place) && !FunctionName($0.name).type.isEmpty }
        }
        let outermost = ownSteps.lazy.compactMap { Self.outermost(functions[$0], doors) }.first
        guard let frame = expecting ?? outermost else { return nil }
        body = (FunctionName(frame.name), Self.file(frame.line))
        firstLines = Set(ownSteps.flatMap { functions[$0] }).reduce(into: [:]) { lines, address in
            guard let name = doors.functionName(at: address), let line = doors.line(at: address).flatMap(Self.number) else {
                return
            }
            lines[name] = min(lines[name] ?? line, line)
        }
    }

    private static func number(_ line: String) -> Int? { line.split(separator: ":").last.flatMap { Int($0) } }

    /// The outermost function of the program that has a line; `nil`: none has.
    private static func outermost(_ functions: [UInt], _ doors: any RuntimeDoors) -> (name: String, line: String)? {
        functions.reversed().lazy.compactMap { address in
            doors.functionName(at: address).flatMap { name in doors.line(at: address).map { (name, $0) } }
        }.first
    }

    /// The innermost function of the program, and where it continues; in the failing expectation, the expectation's place.
    private func innermost(_ index: Int) -> (name: String, line: String)? {
        guard
            let (name, line) = trace.functions[index].lazy.compactMap({ address in
                doors.functionName(at: address).map { ($0, doors.line(at: address)) }
            }).first
        else { return nil }
        guard let line, let number = Self.number(line), let expected = Self.number(place), number < expected,
            firstLines[name] == number, trace.waits[index] == nil
        else { return (name, line ?? place) }
        return (name, place)
    }

    /// The name of a file, which a line gives with the directory and an expectation with the module.
    private static func file(_ line: String) -> Substring { (line.split(separator: "/").last ?? "").prefix { $0 != ":" } }

    func deed(at index: Int) -> Deed {
        guard let frame = innermost(index) else { return .act }
        let (name, isWait) = (FunctionName(frame.name), trace.waits[index] != nil)
        let isNear = Self.file(frame.line) == body.file || Self.file(frame.line) == Self.file(place)
        let isHelper = isNear && (name.type.isEmpty || name.type == body.name.type)
        if isWait { return isHelper ? .wait : .subjectWait }
        let isExpectation = Self.number(frame.line) == Self.number(place)
        let isPoll = trace.functions[index].first.map { counts[$0, default: 0] > 1 } ?? false
        if isHelper, isExpectation || isPoll { return .read }
        return name.base == body.name.base ? .act : .subject
    }

    /// - Parameter held: What happens if the test is held before a step.
    func guess(_ held: Trace, at index: Int, isCertain: Bool) -> Guess? {
        let others = held.steps.dropFirst(index).prefix { $0.task != root }.filter { !$0.isTime }
        let names = others.map(\.task).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        guard let first = names.first else { return nil }
        // The last wait after the first of them could have run.
        let begin = trace.steps.firstIndex { $0.task == first || $0.candidates.contains(first) } ?? trace.steps.count
        let wait = ownSteps.last { $0 <= index && $0 >= begin && deed(at: $0) == .wait }
        func function(of task: String) -> (name: String, line: String)? {
            held.steps.indices.lazy.filter { held.steps[$0].task == task }
                .compactMap { Self.outermost(held.functions[$0], doors) }.first
        }
        let maker = function(of: first).map { FunctionName($0.name).base }
        let line = innermost(wait ?? index)?.line ?? place
        return Guess(
            place: line, wait: wait.flatMap { trace.waits[$0] },
            tasks: names.map { name in
                "'\(name)'" + (function(of: name).map { " (\($0.name) at \($0.line))" } ?? "")
            },
            isUnbegun: !trace.steps.contains { names.contains($0.task) },
            maker: maker.flatMap { $0 == body.name.base ? nil : String($0) }, isCertain: isCertain)
    }
}
