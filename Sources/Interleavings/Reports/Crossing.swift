/// A suspension during which another task ran: while a function was suspended at an `await`, another one ran on the same actor.
struct Crossing: Sendable {
    /// The part of a crossing that two executions can have in common.
    struct Kind: Hashable, Sendable {
        /// The suspended task, and the address where its function continues.
        let suspended: String
        let address: UInt
        /// The other task and its function.
        let task: String
        let function: String
        /// The address where the other function continued; `nil`: it had just begun.
        let from: UInt?

        /// The same for any tasks.
        var ofAny: Kind { Kind(suspended: "", address: address, task: "", function: function, from: from) }
    }

    let kind: Kind
    /// The suspended function, and the steps in which it ran before and after.
    let function: String
    let steps: (before: Int, after: Int)
    /// The actor on which both ran; `nil`: both are functions of a type that isn't an actor.
    let actor: String?
    /// Whether both are functions of one type.
    let isOneType: Bool
    /// Whether the suspended function is the scenario's own, rather than one of the code under test.
    let isScenario: Bool
    /// Whether the other function is the scenario's own: it called something that didn't suspend.
    let isCall: Bool

    /// Whether the other task crosses the same task in the same way, even if another function is suspended.
    func isAlso(_ other: Crossing) -> Bool {
        (kind.suspended, kind.task, kind.function, kind.from)
            == (other.kind.suspended, other.kind.task, other.kind.function, other.kind.from)
    }

    /// - Parameter line: Finds the line of code at an address.
    func sentence(_ line: (UInt) -> String?) -> String {
        func at(_ address: UInt) -> String { line(address).map { " at \($0)" } ?? "" }
        let place = actor.map { $0 == "MainActor" ? "the main actor" : "the same \($0)" }
        var deed = "ran \(kind.function == function ? "the same function" : kind.function)\(place.map { " on \($0)" } ?? "")"
        if isCall, let place, let from = kind.from { deed = "called \(place)\(at(from))" }
        return "While '\(kind.suspended)' was suspended in \(function)\(at(kind.address)) (steps \(steps.before) to"
            + " \(steps.after)), '\(kind.task)' \(deed)."
    }
}

/// The crossings of a failing execution, with the number of passing executions that have each of them.
struct CrossingSuspects {
    private let names: Names
    private let crossings: [Crossing]
    private var counts: [Crossing.Kind: Int] = [:]
    private var passes = 0
    private var nearest: Set<Crossing.Kind> = []

    init(_ trace: Trace, _ doors: (any RuntimeDoors)?) {
        names = Names(doors: doors)
        crossings = names.doors?.namesFunctions == true ? trace.crossings(names.name) : []
    }

    var isEmpty: Bool { crossings.isEmpty }

    /// Records a passing execution; the first is the nearest.
    mutating func add(pass trace: Trace) {
        guard !isEmpty else { return }
        let kinds = trace.crossings(names.name).map(\.kind)
        if passes == 0 { nearest = Set(kinds) }
        for kind in Set(kinds.map(\.ofAny)) { counts[kind, default: 0] += 1 }
        passes += 1
    }

    /// The crossing that is absent in the nearest passing schedule, and rare in the others that pass; `nil`: none is.
    var worst: Crossing? {
        func count(_ crossing: Crossing) -> Int { counts[crossing.kind.ofAny, default: 0] }
        func rank(_ crossing: Crossing) -> (Int, Int, Int, Int, Int) {
            (
                crossing.isScenario ? 1 : 0, crossing.actor == nil ? 1 : 0, count(crossing),
                crossing.isOneType ? 0 : 1, crossing.steps.before
            )
        }
        let suspects = crossings.filter { !nearest.contains($0.kind) }.sorted { rank($0) < rank($1) }
        guard passes > 0, let worst = suspects.first(where: { count($0) <= passes / 4 }) else { return nil }
        // If the function is the scenario's, prefer the same crossing of the function that it called, which may be less rare only
        // because tasks cross it in either order.
        return suspects.first { $0.isAlso(worst) }
    }

    /// Looks each address up once.
    private final class Names {
        let doors: (any RuntimeDoors)?
        private var known: [UInt: String?] = [:]

        init(doors: (any RuntimeDoors)?) {
            self.doors = doors
        }

        func name(at address: UInt) -> String? {
            if let name = known[address] { return name }
            let name = doors?.functionName(at: address)
            known[address] = .some(name)
            return name
        }
    }
}
