import Interleavings
import Synchronization
import TestBudgets
import Testing

@testable import InterleavingsEverything

/// Receives numbers that tasks have drawn under a lock, in any order, since a thread may stop in between.
private actor Register {
    private(set) var numbers: [Int] = []

    func add(_ number: Int) { numbers.append(number) }

    func addTwice(_ number: Int) async {
        numbers.append(number)
        await Task.yield()
        numbers.append(number)
    }
}

private actor Early {
    private var visits = 0

    func visit() -> UInt {
        visits += 1
        return ActorReference(self).address
    }
}

private actor Late {
    private var visits = 0

    func visit() -> UInt {
        visits += 1
        return ActorReference(self).address
    }
}

private final class Numbers: Sendable {
    private let last = Mutex(0)

    func draw() -> Int {
        last.withLock { last in
            last += 1
            return last
        }
    }
}

/// In an exploration that drives everything, and in the preferred mode, which uses the doors that this program links.
@Suite struct `Calls of a default actor` {
    private static func explore(
        drivesAll: Bool, _ scenario: @escaping @Sendable (Simulation) async throws -> Void
    ) async throws -> ExplorationSummary {
        try await Interleavings.explore(.exhaustive(), driving: drivesAll ? .everything : .preferred, scenario)
    }

    @Test(arguments: [2, 3], [false, true])
    func `come in every order, even against the order in which their tasks drew numbers`(callers: Int, drivesAll: Bool)
        async throws
    {
        let orders = Mutex<Set<[Int]>>([])
        let summary = try await Self.explore(drivesAll: drivesAll) { _ in
            let numbers = Numbers(), register = Register()
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<callers { group.addTask { await register.add(numbers.draw()) } }
            }
            let order = await register.numbers
            orders.withLock { _ = $0.insert(order) }
        }
        #expect(summary.coverage.isAll)
        #expect(orders.withLock { $0 } == Set(permutations(of: Array(1...callers))))
    }

    /// Each task has three steps, none of which waits for another task: as many schedules as there are ways to merge them.
    @Test(arguments: [(1, 1), (2, 20), (3, 1_680)], [false, true])
    func `have as many schedules as brute force counts`(_ size: (callers: Int, schedules: Int), drivesAll: Bool) async throws {
        for sharesOne in [false, true] {
            let summary = try await Self.explore(drivesAll: drivesAll) { simulation in
                let numbers = Numbers(), shared = Register()
                for _ in 0..<size.callers {
                    let register = sharesOne ? shared : Register()
                    simulation.spawn("caller") { await register.add(numbers.draw()) }
                }
            }
            #expect(summary.schedules == size.schedules)
            #expect(size.schedules == merges(of: Array(repeating: 3, count: size.callers)))
            #expect(summary.coverage.isAll)
        }
    }

    @Test(arguments: [false, true]) func `take one more step if they yield`(drivesAll: Bool) async throws {
        let orders = Mutex<Set<[Int]>>([])
        let summary = try await Self.explore(drivesAll: drivesAll) { simulation in
            let register = Register()
            let callers = [1, 2].map { number in simulation.spawn("\(number)") { await register.addTwice(number) } }
            for caller in callers { try await caller.value }
            let numbers = await register.numbers
            orders.withLock { _ = $0.insert(numbers) }
        }
        #expect(summary.coverage.isAll)
        #expect(orders.withLock { $0.count } == merges(of: [2, 2]))
    }

    /// The oracle runs the same program in a model.
    @Test(arguments: [(2, false), (2, true)])
    func `that wait for each other have as many schedules as brute force counts`(callers: Int, drivesAll: Bool) async throws {
        let summary = try await Self.explore(drivesAll: drivesAll) { simulation in
            let door = Turnstile(), numbers = Numbers()
            for _ in 0..<callers {
                simulation.spawn("caller") {
                    await door.enter()
                    // Without this call the compiler removes the hop back from the actor.
                    _ = numbers.draw()
                    await door.leave()
                }
            }
        }
        #expect(summary.schedules == TurnstileBoard(callers: callers).games)
        #expect(summary.coverage.isAll)
    }

    /// They are the same steps as without the explorer's executor, but in sequence, including those of the runtime's own functions.
    @Test(arguments: [false, true]) func `that begin with one of the library's functions stay one step`(drivesAll: Bool)
        async throws
    {
        let summary = try await Self.explore(drivesAll: drivesAll) { simulation in
            let keeper = Keeper()
            for _ in 1...2 { simulation.spawn("caller") { await keeper.keep(simulation) } }
        }
        #expect(summary.coverage.isAll)
    }

    @Test func `are one step where the doors are shut, and the summary says so`() async throws {
        let summary = try await Overrides.unaided {
            try await Self.explore(drivesAll: false) { simulation in
                let register = Register()
                for number in 1...2 { simulation.spawn("\(number)") { await register.add(number) } }
            }
        }
        #expect(summary.coverage.gaps == [.defaultActor])
        #expect(summary.schedules < 20)
    }

    /// Each caller has three steps, and the two tasks that the second one starts have one each.
    @Test(arguments: [1, 2], [false, true])
    func `started by one step keep their order, unless their priorities differ`(callers: Int, drivesAll: Bool) async throws {
        let cases: [([TaskPriority], Int)] = [([.medium, .medium], 3), ([.low, .high], 6)]
        // 252 × 36 schedules.
        let isLong = callers == 2 && !isThorough
        for (priorities, orders) in isLong ? cases.dropLast() : cases[...] {
            let summary = try await Self.explore(drivesAll: drivesAll) { simulation in
                let numbers = Numbers()
                for _ in 1...callers {
                    let starter = Starter()
                    simulation.spawn("caller") {
                        await starter.startAll(priorities)
                        // Without this call the compiler removes the hop back from the actor.
                        _ = numbers.draw()
                    }
                }
                try await simulation.settle()
            }
            #expect(
                summary.schedules == merges(of: Array(repeating: 5, count: callers))
                    * (1...callers).reduce(1) { sum, _ in sum * orders })
            #expect(summary.coverage.isAll)
        }
    }

    @Test func `of the main actor that one step starts keep their order, too`() async throws {
        let orders = Mutex<Set<[Int]>>([])
        let summary = try await Interleavings.explore(.exhaustive(), driving: .everything) { _ in
            let started = Started()
            let tasks = (1...3).map { number in
                Task { @MainActor in started.numbers.append(number) }
            }
            for task in tasks { await task.value }
            let numbers = await started.numbers
            orders.withLock { _ = $0.insert(numbers) }
        }
        #expect(summary.coverage.isAll)
        #expect(orders.withLock { $0 } == [[1, 2, 3]])
    }

    @Test(arguments: [false, true])
    func `carry the name of their own actor, not of an earlier one at the same address`(drivesAll: Bool) async throws {
        let isReused = Mutex(false), visits = 20
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await Self.explore(drivesAll: drivesAll) { simulation in
                for _ in 0..<visits {
                    let place = await Early().visit()
                    if await Late().visit() == place { isReused.withLock { $0 = true } }
                }
                try simulation.require(false, "for the report")
            }
        }
        try #require(isReused.withLock { $0 })
        let names = try #require(failure).trace.steps.map(\.place).filter { $0 != "pool" }
        #expect(names == [[String]](repeating: ["Early", "Late"], count: visits).flatMap(\.self))
    }

    @Test func `of a plain task that starts on the actor are driven in the preferred mode, too`() async throws {
        let summary = try await Self.explore(drivesAll: false) { simulation in
            let starter = Starter()
            simulation.spawn("caller") { await starter.start() }
            simulation.spawn("other") { await starter.start() }
            try await simulation.settle()
            try simulation.require(await starter.count == 2, "both have run")
        }
        #expect(summary.coverage.isAll)
    }
}

/// Its state is never visible between two lines, since none of them suspends.
private actor Keeper {
    private var isBetween = false

    func keep(_ simulation: Simulation) async {
        try? simulation.require(!isBetween, "one after the other")
        isBetween = true
        await withCheckedContinuation { continuation in
            isBetween = false
            continuation.resume()
        }
    }
}

@MainActor private final class Started {
    var numbers: [Int] = []
}

private actor Starter {
    private(set) var count = 0

    func start() {
        Task {
            await rest()
            count += 1
        }
    }

    func startAll(_ priorities: [TaskPriority]) {
        for priority in priorities { Task(priority: priority) { count += 1 } }
    }

    @concurrent private nonisolated func rest() async {}
}

/// Returns the number of ways to merge sequences of these lengths.
private func merges(of lengths: [Int]) -> Int {
    let movable = lengths.indices.filter { lengths[$0] > 0 }
    guard !movable.isEmpty else { return 1 }
    return movable.reduce(0) { sum, index in
        var rest = lengths
        rest[index] -= 1
        return sum + merges(of: rest)
    }
}

private func permutations(of numbers: [Int]) -> [[Int]] {
    guard !numbers.isEmpty else { return [[]] }
    return numbers.flatMap { first in permutations(of: numbers.filter { $0 != first }).map { [first] + $0 } }
}
