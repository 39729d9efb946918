#if os(Linux)
import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Small programs in the forms of well-known packages: channels, debounces, pools, log handlers, database queues, bridges.
@Suite struct `Programs in the form of published packages` {
    typealias Scenario = @Sendable (Simulation) async throws -> Void

    private static let granularities = [Granularity.jobs, .accesses]

    private func run(_ granularity: Granularity, _ schedules: Int, _ scenario: @escaping Scenario) async throws {
        try await explore(
            .mixed(schedules: schedules), granularity: granularity, driving: .everythingAndQueues, scenario)
    }

    @Test(arguments: RightProgram.allCases, granularities)
    func `pass and end under every explored schedule if they are right`(_ program: RightProgram, _ granularity: Granularity)
        async throws
    {
        try await run(granularity, .everyday(15, thorough: 150)) { try await program.run($0) }
    }

    @Test(arguments: KnownBug.allCases, granularities)
    func `pass and end under every explored schedule once a known bug is mended`(_ bug: KnownBug, _ granularity: Granularity)
        async throws
    {
        try await run(granularity, .everyday(15, thorough: 150)) { try await bug.run($0, isMended: true) }
    }

    @Test(arguments: KnownBug.allCases)
    func `fail with a known bug`(_ bug: KnownBug) async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await run(.accesses, 300) { try await bug.run($0, isMended: false) }
        }
        let code = (failure?.underlying as? ExplorationProblem)?.code
        #expect(code == .deadlock || code == .requirement, "\(String(describing: failure))")
    }
}

/// A value behind a plain lock.
final class Held<Value: Sendable>: Sendable {
    private let lock = NSLock()
    private let value: Lock<Value>

    init(_ value: Value) {
        self.value = Lock(value)
    }

    func with<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return value.withLock { body(&$0) }
    }

    var now: Value { with { $0 } }
}

/// Programs without a mistake.
enum RightProgram: CaseIterable, Sendable {
    case channel, merge, zip, debounce, throttle, boundedBuffer, termination, cancelledConsumer
    case logHandler, databaseQueue, databasePool, subject, promise, semaphoreBridge, groupNotify
    case fairActor, singleFlight, connectionPool, asyncSemaphore, groupCancellation, firstResult
    case boundedGroup, throwingGroup, timeout, workItem

    func run(_ simulation: Simulation) async throws {
        let sum = Held(0)
        let expected = begin(simulation, sum)
        try await simulation.settle()
        try simulation.require(sum.now == expected, "\(sum.now) instead of \(expected)")
    }

    /// - Returns: What the sum is in the end.
    private func begin(_ simulation: Simulation, _ sum: Held<Int>) -> Int {
        switch self {
        case .channel, .fairActor, .singleFlight, .connectionPool, .asyncSemaphore: beginActors(simulation, sum)
        case .merge, .zip, .debounce, .throttle, .boundedBuffer, .termination, .cancelledConsumer: beginStreams(simulation, sum)
        case .logHandler, .databaseQueue, .databasePool, .subject, .promise, .semaphoreBridge, .groupNotify, .workItem:
            beginThreads(simulation, sum)
        case .groupCancellation, .firstResult, .boundedGroup, .throwingGroup, .timeout: beginGroups(simulation, sum)
        }
    }

    private func beginActors(_ simulation: Simulation, _ sum: Held<Int>) -> Int {
        switch self {
        case .channel:
            let channel = Rendezvous()
            simulation.spawn("sends") { for number in 1...3 { await channel.send(number) } }
            simulation.spawn("receives") {
                for _ in 1...3 {
                    let number = await channel.receive()
                    sum.with { $0 = $0 * 10 + number }
                }
            }
            return 123
        case .fairActor:
            let gate = Gatekeeper(permits: 1)
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    await gate.enter()
                    let before = sum.now
                    await Task.yield()
                    sum.with { $0 = before + 1 }
                    await gate.leave()
                }
            }
            return 3
        case .singleFlight:
            let loader = OneLoad(sum)
            for name in ["a", "b", "c"] { simulation.spawn(name) { _ = await loader.value() } }
            return 1
        case .connectionPool:
            let pool = Gatekeeper(permits: 2)
            for name in ["a", "b", "c", "d"] {
                simulation.spawn(name) {
                    await pool.enter()
                    try? await simulation.clock.sleep(for: .seconds(1))
                    sum.with { $0 += 1 }
                    await pool.leave()
                }
            }
            return 4
        default:
            let gate = Gatekeeper(permits: 0)
            simulation.spawn("waits") {
                await gate.enter()
                sum.with { $0 += 1 }
            }
            simulation.spawn("signals") { await gate.leave() }
            return 1
        }
    }

    private func beginStreams(_ simulation: Simulation, _ sum: Held<Int>) -> Int {
        let (stream, source) = AsyncStream.makeStream(of: Int.self)
        switch self {
        case .merge:
            let open = Held(2)
            for (name, numbers) in [("odd", [1, 3]), ("even", [2, 4])] {
                simulation.spawn(name) {
                    for number in numbers {
                        source.yield(number)
                        await Task.yield()
                    }
                    let left = open.with {
                        $0 -= 1; return $0
                    }
                    if left == 0 { source.finish() }
                }
            }
            simulation.spawn("reads") { for await number in stream { sum.with { $0 += number } } }
            return 10
        case .zip:
            let (other, otherSource) = AsyncStream.makeStream(of: Int.self)
            simulation.spawn("one") { for number in 1...3 { source.yield(number) } }
            simulation.spawn("other") { for number in 1...3 { otherSource.yield(number) } }
            simulation.spawn("reads both") {
                var (one, two) = (stream.makeAsyncIterator(), other.makeAsyncIterator())
                for _ in 1...3 {
                    let (first, second) = (await one.next() ?? 0, await two.next() ?? 0)
                    sum.with { $0 += first * second }
                }
            }
            return 14
        case .debounce:
            let latest = Held(0)
            for number in 1...3 {
                let turn = latest.with {
                    $0 += 1; return $0
                }
                simulation.spawn("value \(number)") {
                    try? await simulation.clock.sleep(for: .seconds(1))
                    if latest.now == turn { sum.with { $0 += number } }
                }
            }
            return 3
        case .throttle:
            let isOpen = Held(true)
            for number in 1...3 {
                simulation.spawn("value \(number)") {
                    let isFirst = isOpen.with { isOpen in
                        defer { isOpen = false }
                        return isOpen
                    }
                    if isFirst { sum.with { $0 += 1 } }
                }
            }
            return 1
        case .boundedBuffer:
            let (bounded, input) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
            simulation.spawn("writes") {
                for number in 1...5 { input.yield(number) }
                input.finish()
            }
            simulation.spawn("reads") { for await number in bounded { sum.with { $0 = max($0, number) } } }
            return 5
        case .termination:
            source.onTermination = { _ in sum.with { $0 += 100 } }
            simulation.spawn("writes") {
                source.yield(1)
                source.finish()
            }
            simulation.spawn("reads") { for await number in stream { sum.with { $0 += number } } }
            return 101
        default:
            source.onTermination = { _ in sum.with { $0 += 1 } }
            simulation.spawn("cancels") {
                let reader = Task { for await _ in stream {} }
                await Task.yield()
                reader.cancel()
                await reader.value
            }
            return 1
        }
    }

    private func beginThreads(_ simulation: Simulation, _ sum: Held<Int>) -> Int {
        let queue = DispatchQueue(label: "queue"), wide = DispatchQueue(label: "wide", attributes: .concurrent)
        switch self {
        case .logHandler:
            let metadata = Held([String: Int]())
            for name in ["a", "b", "c"] { simulation.spawn(name) { metadata.with { $0[name] = 1 } } }
            simulation.spawn("logs") {
                _ = metadata.now
                sum.with { $0 += 1 }
            }
            return 1
        case .databaseQueue:
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    for _ in 1...2 {
                        queue.sync {
                            dispatchPrecondition(condition: .onQueue(queue))
                            let before = sum.now
                            interleavingPoint("in the transaction")
                            sum.with { $0 = before + 1 }
                        }
                    }
                }
            }
            return 4
        case .databasePool:
            let version = Held(0)
            simulation.spawn("writes") {
                wide.async(flags: .barrier) {
                    version.with { $0 += 1 }
                    interleavingPoint("half written")
                    version.with { $0 += 1 }
                }
            }
            for name in ["reads", "reads too"] {
                simulation.spawn(name) { wide.sync { if version.now % 2 == 0 { sum.with { $0 += 1 } } } }
            }
            return 2
        case .subject:
            let lock = NSRecursiveLock()
            for name in ["a", "b"] {
                simulation.spawn(name) {
                    lock.withLock {
                        lock.withLock {
                            let before = sum.now
                            interleavingPoint("in the subscriber")
                            sum.with { $0 = before + 1 }
                        }
                    }
                }
            }
            return 2
        case .promise:
            let promise = Promise()
            simulation.spawn("waits") {
                let value = await promise.value()
                sum.with { $0 += value }
            }
            simulation.spawn("waits too") {
                let value = await promise.value()
                sum.with { $0 += value }
            }
            simulation.spawn("fulfils") { promise.fulfil(2) }
            return 4
        case .semaphoreBridge:
            simulation.spawn("bridges") {
                let isDone = DispatchSemaphore(value: 0), result = Held(0)
                wide.async {
                    result.with { $0 = 7 }
                    isDone.signal()
                }
                isDone.wait()
                let value = result.now
                sum.with { $0 += value }
            }
            return 7
        case .groupNotify:
            simulation.spawn("notifies") {
                let group = DispatchGroup(), done = Held(0)
                for _ in 1...3 { wide.async(group: group) { done.with { $0 += 1 } } }
                await withCheckedContinuation { continuation in
                    group.notify(queue: queue) { continuation.resume() }
                }
                let count = done.now
                sum.with { $0 += count }
            }
            return 3
        default:
            simulation.spawn("cancels") {
                let began = Held(false)
                let item = DispatchWorkItem { began.with { $0 = true } }
                queue.async(execute: item)
                item.cancel()
                queue.sync {}
                _ = began.now
                sum.with { $0 += 1 }
            }
            return 1
        }
    }

    private func beginGroups(_ simulation: Simulation, _ sum: Held<Int>) -> Int {
        simulation.spawn("group") {
            let result: Int
            switch self {
            case .groupCancellation:
                result = await withTaskGroup(of: Int.self) { group in
                    for _ in 1...3 {
                        group.addTask { (try? await Task.sleep(for: .seconds(3_600))) == nil ? 1 : 0 }
                    }
                    group.cancelAll()
                    return await group.reduce(0, +)
                }
            case .firstResult:
                result = await withTaskGroup(of: Int.self) { group in
                    for number in 1...3 {
                        group.addTask {
                            try? await Task.sleep(for: .seconds(number))
                            return number
                        }
                    }
                    _ = await group.next()
                    group.cancelAll()
                    var count = 1
                    for await _ in group { count += 1 }
                    return count
                }
            case .boundedGroup:
                let (inside, most) = (Held(0), Held(0))
                await withTaskGroup(of: Void.self) { group in
                    for number in 1...5 {
                        if number > 2 { _ = await group.next() }
                        group.addTask {
                            let now = inside.with {
                                $0 += 1; return $0
                            }
                            most.with { $0 = max($0, now) }
                            await Task.yield()
                            inside.with { $0 -= 1 }
                        }
                    }
                }
                result = most.now <= 2 ? 3 : -1
            case .throwingGroup:
                do {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        group.addTask { try await Task.sleep(for: .seconds(3_600)) }
                        group.addTask { throw Failing() }
                        try await group.waitForAll()
                    }
                    result = 0
                } catch { result = error is Failing ? 3 : -1 }
            default:
                result = await withTaskGroup(of: Int.self) { group in
                    group.addTask {
                        try? await Task.sleep(for: .seconds(1))
                        return 3
                    }
                    group.addTask {
                        try? await Task.sleep(for: .seconds(3_600))
                        return -1
                    }
                    defer { group.cancelAll() }
                    return await group.next() ?? 0
                }
            }
            sum.with { $0 += result }
        }
        return 3
    }
}

/// Programs with a mistake, and without it; each names a public report of such a mistake, but for one that this explorer has found.
enum KnownBug: String, CaseIterable, Sendable {
    case reentrantLoad = "spring-media/Carlos#1"
    case lateContinuation = "apple/swift-async-algorithms#80"
    case handlerSetLate
    case staleDebounce = "satsdisco/JellyAmp#41"
    case checkedTwice = "swiftlang/swift-package-manager#9356"
    case enteredInside = "customerio/customerio-ios#584"
    case signalledEarly = "dropbox/pilot#99"
    case crossedLocks = "swiftlang/swift-package-manager#10266"
    case lostPermit = "Mesh-LLM/mesh-llm#1444"
    case splitTransaction = "segmentio/analytics-swift#330"
    case copiedMetadata = "ReactiveCocoa/ReactiveSwift#754"
    case conditionWithIf = "grpc/grpc-swift#21"

    func run(_ simulation: Simulation, isMended: Bool) async throws {
        let sum = Held(0)
        let expected = begin(simulation, sum, isMended)
        try await simulation.settle()
        try simulation.require(sum.now == expected, "\(sum.now) instead of \(expected)")
    }

    /// - Returns: What the sum is in the end.
    private func begin(_ simulation: Simulation, _ sum: Held<Int>, _ isMended: Bool) -> Int {
        switch self {
        case .reentrantLoad, .lateContinuation, .handlerSetLate, .staleDebounce, .lostPermit:
            beginTasks(simulation, sum, isMended)
        default: beginThreads(simulation, sum, isMended)
        }
    }

    private func beginTasks(_ simulation: Simulation, _ sum: Held<Int>, _ isMended: Bool) -> Int {
        switch self {
        case .reentrantLoad:
            let loader = OneLoad(sum)
            for name in ["a", "b"] {
                simulation.spawn(name) { _ = isMended ? await loader.value() : await loader.valueWithoutFlight() }
            }
            return 1
        case .lateContinuation:
            simulation.spawn("cancels") {
                let waiter = CancellableWait(remembers: isMended)
                let task = Task { await waiter.wait() }
                await Task.yield()
                task.cancel()
                await task.value
                sum.with { $0 += 1 }
            }
            return 1
        case .handlerSetLate:
            let (stream, source) = AsyncStream.makeStream(of: Int.self)
            if isMended { source.onTermination = { _ in sum.with { $0 += 1 } } }
            simulation.spawn("produces") {
                source.yield(1)
                await Task.yield()
                // Set after the end, it is never called for a consumer that has left: the producer goes on.
                if !isMended, case .enqueued = source.yield(2) { source.onTermination = { _ in sum.with { $0 += 1 } } }
            }
            simulation.spawn("consumes") {
                let reader = Task { for await _ in stream {} }
                await Task.yield()
                reader.cancel()
                await reader.value
            }
            return 1
        case .staleDebounce:
            let latest = Held(0)
            for number in 1...2 {
                let turn = latest.with {
                    $0 += 1; return $0
                }
                simulation.spawn("value \(number)") {
                    try? await simulation.clock.sleep(for: .seconds(1))
                    if !isMended || latest.now == turn { sum.with { $0 += number } }
                }
            }
            return 2
        default:
            let gate = Gatekeeper(permits: 0)
            simulation.spawn("leaves") { await gate.leave() }
            simulation.spawn("is cancelled") {
                let task = Task { await gate.enter() }
                task.cancel()
                await task.value
                // A cancelled caller that got the permit must give it back.
                if isMended { await gate.leave() }
            }
            simulation.spawn("enters") {
                await gate.enter()
                sum.with { $0 += 1 }
                if isMended { await gate.leave() }
            }
            return 1
        }
    }

    private func beginThreads(_ simulation: Simulation, _ sum: Held<Int>, _ isMended: Bool) -> Int {
        let queue = DispatchQueue(label: "queue"), wide = DispatchQueue(label: "wide", attributes: .concurrent)
        let names = ["a", "b"]
        switch self {
        case .checkedTwice:
            let isMade = Held(false)
            for name in names {
                simulation.spawn(name) {
                    let isFirst =
                        isMended
                        ? isMade.with { isMade in
                            defer { isMade = true }
                            return !isMade
                        } : !isMade.now
                    guard isFirst else { return }
                    isMade.with { $0 = true }
                    sum.with { $0 += 1 }
                }
            }
            return 1
        case .enteredInside:
            simulation.spawn("waits") {
                let group = DispatchGroup(), done = Held(0)
                for _ in 1...2 {
                    if isMended { group.enter() }
                    wide.async {
                        if !isMended { group.enter() }
                        done.with { $0 += 1 }
                        group.leave()
                    }
                }
                await withCheckedContinuation { continuation in
                    group.notify(queue: queue) { continuation.resume() }
                }
                let count = done.now
                sum.with { $0 += count }
            }
            return 2
        case .signalledEarly:
            simulation.spawn("bridges") {
                let isDone = DispatchSemaphore(value: 0), result = Held(0)
                wide.async {
                    if !isMended { isDone.signal() }
                    result.with { $0 = 7 }
                    if isMended { isDone.signal() }
                }
                isDone.wait()
                let value = result.now
                sum.with { $0 += value }
            }
            return 7
        case .crossedLocks:
            let (one, two) = (NSLock(), NSLock())
            simulation.spawn("a") { one.withLock { two.withLock { sum.with { $0 += 1 } } } }
            simulation.spawn("b") {
                let (first, second) = isMended ? (one, two) : (two, one)
                first.withLock { second.withLock { sum.with { $0 += 1 } } }
            }
            return 2
        case .splitTransaction:
            for name in names {
                simulation.spawn(name) {
                    if isMended { return queue.sync { sum.with { $0 += 1 } } }
                    let before = queue.sync { sum.now }
                    queue.sync { sum.with { $0 = before + 1 } }
                }
            }
            return 2
        case .copiedMetadata:
            let metadata = Held(Set<String>())
            for name in names {
                simulation.spawn(name) {
                    if isMended {
                        metadata.with { _ = $0.insert(name) }
                    } else {
                        let copy = metadata.now.union([name])
                        metadata.with { $0 = copy }
                    }
                    let count = metadata.now.count
                    sum.with { $0 = max($0, count) }
                }
            }
            return 2
        default:
            let condition = NSCondition(), items = Held(0)
            for name in names {
                simulation.spawn(name) {
                    condition.withLock {
                        if isMended {
                            while items.now == 0 { condition.wait() }
                        } else if items.now == 0 {
                            condition.wait()
                        }
                        items.with { $0 -= 1 }
                        let left = items.now
                        sum.with { $0 = min($0, left) }
                    }
                }
            }
            simulation.spawn("adds") {
                for _ in names {
                    condition.withLock {
                        items.with { $0 += 1 }
                        condition.broadcast()
                    }
                }
            }
            return 0
        }
    }
}

/// A channel that hands each element from one task to another.
private actor Rendezvous {
    private var senders: [(Int, CheckedContinuation<Void, Never>)] = []
    private var receivers: [CheckedContinuation<Int, Never>] = []

    func send(_ number: Int) async {
        if !receivers.isEmpty { return receivers.removeFirst().resume(returning: number) }
        await withCheckedContinuation { senders.append((number, $0)) }
    }

    func receive() async -> Int {
        if !senders.isEmpty {
            let (number, sender) = senders.removeFirst()
            sender.resume()
            return number
        }
        return await withCheckedContinuation { receivers.append($0) }
    }
}

private struct Failing: Error {}

/// A semaphore for tasks.
private actor Gatekeeper {
    private var permits: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(permits: Int) {
        self.permits = permits
    }

    func enter() async {
        if permits > 0 { permits -= 1 } else { await withCheckedContinuation { waiting.append($0) } }
    }

    func leave() {
        if waiting.isEmpty { permits += 1 } else { waiting.removeFirst().resume() }
    }
}

/// Counts its loads.
private actor OneLoad {
    private let loads: Held<Int>
    private var cached: Int?
    private var flight: Task<Int, Never>?

    init(_ loads: Held<Int>) {
        self.loads = loads
    }

    func value() async -> Int {
        let task = flight ?? Task { await load() }
        flight = task
        return await task.value
    }

    func valueWithoutFlight() async -> Int {
        if let cached { return cached }
        let value = await load()
        cached = value
        return value
    }

    private func load() async -> Int {
        loads.with { $0 += 1 }
        await Task.yield()
        return 42
    }
}

/// A value that many tasks await, and any thread sets.
private final class Promise: Sendable {
    private enum State: Sendable {
        case waiting([CheckedContinuation<Int, Never>])
        case fulfilled(Int)
    }

    private let state = Held(State.waiting([]))

    func value() async -> Int {
        await withCheckedContinuation { continuation in
            let value: Int? = state.with { state in
                switch state {
                case .fulfilled(let value): return value
                case .waiting(let others):
                    state = .waiting(others + [continuation])
                    return nil
                }
            }
            if let value { continuation.resume(returning: value) }
        }
    }

    func fulfil(_ value: Int) {
        let waiting = state.with { state in
            defer { state = .fulfilled(value) }
            guard case .waiting(let waiting) = state else { return [CheckedContinuation<Int, Never>]() }
            return waiting
        }
        for continuation in waiting { continuation.resume(returning: value) }
    }
}

/// A wait that ends only when its task is cancelled.
private final class CancellableWait: Sendable {
    private struct State: Sendable {
        var continuation: CheckedContinuation<Void, Never>?
        var isCancelled = false
    }

    private let state = Held(State())
    /// Whether a cancellation before the wait is remembered.
    private let remembers: Bool

    init(remembers: Bool) {
        self.remembers = remembers
    }

    func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.with { state in
                    if !state.isCancelled || !remembers { state.continuation = continuation }
                    return state.isCancelled && remembers
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            let continuation = state.with { state in
                state.isCancelled = true
                defer { state.continuation = nil }
                return state.continuation
            }
            continuation?.resume()
        }
    }
}
#endif
