#if os(Linux)
import Dispatch
import Foundation
import Interleavings
import Synchronization
import TokenServiceConcurrency

extension Program {
    static let ofActors = [
        Program("a cache by keys, one load for each", .everything) { simulation, sum in
            let cache = KeyedCache()
            for (caller, key) in ["a", "b", "a", "b"].enumerated() {
                simulation.spawn("caller \(caller)") { _ = await cache.value(of: key) { sum.add(1) } }
            }
            return 2
        },
        Program("a cache that forgets a failed load", .everything) { simulation, sum in
            let cache = FallibleCache()
            simulation.spawn("caller") {
                _ = try? await cache.value()
                sum.add((try? await cache.value()) ?? 0)
            }
            return 2
        },
        Program("a guard against reentrance", .preferred) { simulation, sum in
            let guarded = GuardedWork()
            for name in ["a", "b", "c"] { simulation.spawn(name) { await guarded.run() } }
            simulation.spawn("counts") { sum.add(await guarded.most <= 1 ? 1 : 0) }
            return 1
        },
        Program("a lock for tasks that is handed on", .preferred) { simulation, sum in
            let lock = TaskLock()
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    await lock.take()
                    let before = sum.now
                    await Task.yield()
                    sum.with { $0 = before + 1 }
                    await lock.free()
                }
            }
            return 3
        },
        Program("a refresh of a generation, once", .everything) { simulation, sum in
            let session = Session()
            for name in ["a", "b", "c"] {
                simulation.spawn(name) { await session.refresh(after: 1) }
            }
            simulation.spawn("later") {
                await session.refresh(after: 1)
                sum.add(await session.generation)
            }
            return 2
        },
        Program("a transfer in one actor", .preferred) { simulation, sum in
            let bank = Bank(), money = [3, 4]
            for amount in money { simulation.spawn("pays \(amount)") { await bank.move(amount) } }
            simulation.spawn("audits") { sum.add(await bank.total) }
            return 100
        },
        Program("a transfer between two actors, with a refund", .preferred) { simulation, sum in
            let (one, other) = (Account(10), Account(0))
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    guard await one.withdraw(7) else { return }
                    await Task.yield()
                    if await !other.deposit(7, limit: 5) { _ = await one.deposit(7, limit: 100) }
                    let sold = await one.balance
                    sum.with { $0 = max($0, sold) }
                }
            }
            return 10
        },
        Program("a function isolated to an actor that it is given", .preferred) { simulation, sum in
            let bank = Bank()
            for name in ["a", "b"] { simulation.spawn(name) { sum.add(await total(of: bank, moving: 1) / 100) } }
            return 2
        },
        Program("a global actor", .everything) { simulation, sum in
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    await Room.visit { sum.add(1) }
                    await Task { @Room in sum.add(1) }.value
                }
            }
            return 6
        },
        Program("a model on the main actor", .everything) { simulation, sum in
            for number in 1...3 {
                simulation.spawn("loads \(number)") {
                    await Task.yield()
                    await MainActor.run {
                        let before = sum.now
                        interleavingPoint("redraws")
                        sum.with { $0 = before + number }
                    }
                }
            }
            return 6
        },
        Program("hops to the main actor and back", .everything) { simulation, sum in
            let account = Account(0)
            simulation.spawn("hops") {
                for _ in 1...3 {
                    _ = await account.deposit(1, limit: 10)
                    await MainActor.run { sum.add(1) }
                }
                sum.add(await account.balance)
            }
            return 6
        },
        Program("an actor whose method begins with a handler, beside plain calls", .everything) { simulation, sum in
            let room = HandledRoom()
            simulation.spawn("waits") { await room.visitWithHandler() }
            simulation.spawn("calls") { await room.visit() }
            simulation.spawn("calls too") {
                await room.visit()
                sum.add(await room.most)
            }
            return 1
        },
        Program("a semaphore whose waiters can be cancelled", .everything) { simulation, sum in
            let permits = CancellablePermits()
            simulation.spawn("holds") {
                try await permits.take()
                await Task.yield()
                permits.give()
            }
            simulation.spawn("is cancelled") {
                let task = Task {
                    try await permits.take()
                    permits.give()
                }
                await Task.yield()
                task.cancel()
                _ = await task.result
                try await permits.take()
                permits.give()
                sum.add(1)
            }
            return 1
        },
        Program("a reader that sees both halves of a write", .preferred) { simulation, sum in
            let pair = Pair()
            simulation.spawn("writes") { for number in 1...3 { await pair.set(number) } }
            for name in ["reads", "reads too"] {
                simulation.spawn(name) {
                    let (one, other) = await pair.both
                    sum.add(one == other ? 1 : 0)
                }
            }
            return 2
        },
        Program("a barrier at which tasks wait for each other", .preferred) { simulation, sum in
            let barrier = TaskBarrier(3), arrived = Held(0)
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    arrived.add(1)
                    await barrier.wait()
                    sum.add(arrived.now)
                }
            }
            return 9
        },
        Program("a pool that lends two connections", .preferred) { simulation, sum in
            let pool = Pool([1, 2])
            for name in ["a", "b", "c", "d"] {
                simulation.spawn(name) {
                    let connection = await pool.lend()
                    try await simulation.clock.sleep(for: .seconds(connection))
                    await pool.takeBack(connection)
                    sum.add(1)
                }
            }
            return 4
        },
    ]
}

private actor KeyedCache {
    private var flights: [String: Task<Int, Never>] = [:]

    func value(of key: String, _ load: @escaping @Sendable () -> Void) async -> Int {
        if let flight = flights[key] { return await flight.value }
        let flight = Task {
            await Task.yield()
            load()
            return 1
        }
        flights[key] = flight
        return await flight.value
    }
}

private actor FallibleCache {
    private var flight: Task<Int, any Error>?
    private var attempts = 0

    func value() async throws -> Int {
        if let flight { return try await flight.value }
        attempts += 1
        let attempt = attempts
        let own = Task<Int, any Error> {
            await Task.yield()
            if attempt == 1 { throw Refused() }
            return attempt
        }
        flight = own
        do { return try await own.value } catch {
            if flight == own { flight = nil }
            throw error
        }
    }
}

private actor GuardedWork {
    private var isBusy = false
    private var inside = 0
    private(set) var most = 0

    func run() async {
        guard !isBusy else { return }
        isBusy = true
        inside += 1
        most = max(most, inside)
        await Task.yield()
        inside -= 1
        isBusy = false
    }
}

private actor TaskLock {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func take() async {
        if !isTaken { return isTaken = true }
        await withCheckedContinuation { waiting.append($0) }
    }

    func free() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}

private actor Session {
    private(set) var generation = 1
    private var refreshing: Task<Void, Never>?

    func refresh(after used: Int) async {
        guard used == generation else { return }
        if let refreshing { return await refreshing.value }
        let own = Task { await exchange() }
        refreshing = own
        await own.value
    }

    private func exchange() async {
        await Task.yield()
        generation += 1
        refreshing = nil
    }
}

private actor Bank {
    private var balances = [50, 50]
    var total: Int { balances.reduce(0, +) }

    func move(_ amount: Int) {
        balances[0] -= amount
        interleavingPoint("half moved")
        balances[1] += amount
    }
}

private func total(of bank: isolated Bank, moving amount: Int) -> Int {
    bank.move(amount)
    return bank.total
}

private actor Account {
    private(set) var balance: Int

    init(_ balance: Int) {
        self.balance = balance
    }

    func withdraw(_ amount: Int) -> Bool {
        guard balance >= amount else { return false }
        balance -= amount
        return true
    }

    func deposit(_ amount: Int, limit: Int) -> Bool {
        guard balance + amount <= limit else { return false }
        balance += amount
        return true
    }
}

@globalActor private actor Room {
    static let shared = Room()

    @Room static func visit(_ work: @Sendable () -> Void) {
        interleavingPoint("in the room")
        work()
    }
}

private actor HandledRoom {
    private var inside = 0
    private(set) var most = 0

    func visit() {
        inside += 1
        most = max(most, inside)
        interleavingPoint("inside")
        inside -= 1
    }

    func visitWithHandler() async {
        await withTaskCancellationHandler {
            visit()
            await Task.yield()
            visit()
        } onCancel: {
        }
    }
}

/// Remembers a cancellation that comes before the wait.
private final class CancellablePermits: Sendable {
    private struct State: Sendable {
        var isFree = true
        var waiting: [(id: Int, continuation: CheckedContinuation<Void, any Error>)] = []
        var cancelled: Set<Int> = []
        var nextID = 0
    }

    private let state = Mutex(State())

    func take() async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer: Result<Void, any Error>? = state.withLock { state in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    guard !state.isFree else {
                        state.isFree = false
                        return .success(())
                    }
                    state.waiting.append((id, continuation))
                    return nil
                }
                if let answer { continuation.resume(with: answer) }
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Void, any Error>? in
                guard let index = state.waiting.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.waiting.remove(at: index).continuation
            }
            waiting?.resume(throwing: CancellationError())
        }
    }

    func give() {
        let next = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            guard !state.waiting.isEmpty else {
                state.isFree = true
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume()
    }
}

private actor Pair {
    private(set) var both = (0, 0)

    func set(_ number: Int) {
        both.0 = number
        interleavingPoint("half written")
        both.1 = number
    }
}

private actor TaskBarrier {
    private let count: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(_ count: Int) {
        self.count = count
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            waiting.append(continuation)
            guard waiting.count == count else { return }
            for continuation in waiting { continuation.resume() }
            waiting = []
        }
    }
}

private actor Pool {
    private var free: [Int]
    private var waiting: [CheckedContinuation<Int, Never>] = []

    init(_ free: [Int]) {
        self.free = free
    }

    func lend() async -> Int {
        if let connection = free.popLast() { return connection }
        return await withCheckedContinuation { waiting.append($0) }
    }

    func takeBack(_ connection: Int) {
        if waiting.isEmpty { free.append(connection) } else { waiting.removeFirst().resume(returning: connection) }
    }
}
#endif
