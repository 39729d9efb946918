import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything
import TestBudgets
import Testing
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Programs that never fail on the real runtime: a failing schedule is a bug of the explorer.
@Suite struct `Right code` {
    private static let ways: [Driving] = [.preferred, .everything, .everythingAndQueues]

    /// Runs a program in every order, up to a limit, and expects one outcome.
    private func expect(
        _ outcome: [String], _ driving: Driving, _ granularity: Granularity = .jobs,
        _ program: @escaping @Sendable (Notes) async throws -> Void
    ) async throws {
        let limit = Int.everyday(40, thorough: 300), schedules = Int.everyday(12, thorough: 100)
        for strategy in [Strategy.exhaustive(limit: limit), .mixed(schedules: schedules)] {
            try await explore(strategy, granularity: granularity, driving: driving) { simulation in
                let notes = Notes()
                simulation.spawn("program") { try await program(notes) }
                try await simulation.settle()
                try simulation.require(notes.all == outcome, "\(notes.all)")
            }
        }
    }

    #if os(Linux)
    // MARK: Tasks that start at once

    @Test(arguments: ways) func `begins an immediate task on an actor at once`(_ driving: Driving) async throws {
        try await expect(["1", "2", "3"], driving) { await Immediate().begin($0) }
    }

    @Test(arguments: ways) func `begins an immediate detached task at once`(_ driving: Driving) async throws {
        try await expect(["1", "2", "3"], driving) { await Immediate().beginDetached($0) }
    }

    @Test(arguments: [Driving.everything, .everythingAndQueues])
    func `begins an immediate task on the main actor at once`(_ driving: Driving) async throws {
        try await expect(["1", "2", "3"], driving) { await beginOnMain($0) }
    }

    @Test(arguments: [Driving.everything, .everythingAndQueues])
    func `begins an immediate task outside of actors at once`(_ driving: Driving) async throws {
        try await expect(["1", "2", "3"], driving) { notes in
            let task = Task.immediate {
                notes.add("1")
                await Task.yield()
                notes.add("3")
            }
            notes.add("2")
            await task.value
        }
    }

    // MARK: One task in an actor

    @Test(arguments: ["handler", "group", "stream", "discarding group", "continuation", "value"])
    func `lets no task into an actor in which another one waits for a queue`(_ way: String) async throws {
        try await explore(.mixed(schedules: .everyday(40, thorough: 150)), driving: .everythingAndQueues) { simulation in
            let room = Room()
            for name in ["A", "B"] { simulation.spawn(name) { await room.enter(after: way) } }
            try await simulation.settle()
            try simulation.require(room.most == 1, "\(room.most) at once")
        }
    }

    @Test(arguments: ["handler", "group", "stream", "discarding group", "continuation", "value"])
    func `lets no task into an actor in which another one stopped at a point`(_ way: String) async throws {
        let schedules = Int.everyday(40, thorough: 150)
        try await explore(.mixed(schedules: schedules), granularity: .accesses, driving: .everything) { simulation in
            let room = Room()
            for name in ["A", "B"] { simulation.spawn(name) { await room.enter(after: way) } }
            try await simulation.settle()
            try simulation.require(room.most == 1, "\(room.most) at once")
        }
    }

    /// Where a method begins with such a call, only the runtime itself enters the actor.
    @Test(
        arguments: ["handler", "group", "stream", "discarding group", "continuation", "value"],
        [Granularity.jobs, .accesses])
    func `lets no task into an actor during a method that begins with a wait`(_ way: String, _ granularity: Granularity)
        async throws
    {
        let driving: Driving = granularity == .jobs ? .everythingAndQueues : .everything
        try await explore(.mixed(schedules: .everyday(60, thorough: 250)), granularity: granularity, driving: driving) {
            simulation in
            let room = Room()
            simulation.spawn("A") { await room.begin(with: way) }
            simulation.spawn("B") { await room.visit() }
            try await simulation.settle()
            try simulation.require(room.most == 1, "\(room.most) at once")
        }
    }

    // MARK: Order in an actor's queue

    private static let sending: Scenario = { simulation in
        let line = Line()
        simulation.spawn("sender") { for number in 1...3 { await line.send(number) } }
        try await simulation.settle()
        let numbers = await line.numbers
        try simulation.require(numbers == [1, 2, 3], "\(numbers)")
    }

    private typealias Scenario = @Sendable (Simulation) async throws -> Void

    @Test(arguments: ways) func `keeps the order in which jobs of one priority have reached an actor`(_ driving: Driving)
        async throws
    {
        let summary = try await explore(.exhaustive(limit: 3_000), driving: driving, Self.sending)
        #expect(summary.mostChoices > 0)
    }

    @Test func `lets jobs overtake each other in an actor if the exploration allows it, and the report names them`() async throws
    {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(ordering: .any, driving: .everything, Self.sending)
        }
        let lines = try #require(failure).text.split(separator: "\n")
        #expect(
            lines[1].hasPrefix("At step ") && lines[1].contains("' overtook '") && lines[1].contains("'ordering: .any'"),
            "\(lines[1])")
        #expect(failure?.replayLine.contains("ordering: .any") == true)
    }

    /// The real runtime reorders such calls, too: each comes to the actor from a task of its own.
    @Test(arguments: ways) func `lets calls from several tasks arrive at an actor in any order`(_ driving: Driving) async throws {
        await #expect(throws: ScheduleFailure.self) {
            try await explore(driving: driving) { simulation in
                let line = Line()
                for number in 1...3 { simulation.spawn("\(number)") { await line.add(number) } }
                try await simulation.settle()
                let numbers = await line.numbers
                try simulation.require(numbers == [1, 2, 3], "\(numbers)")
            }
        }
    }

    // MARK: Order in target queues

    @Test func `runs the blocks of a queue and of its target in the order in which they were added`() async throws {
        try await expect(["1", "2"], .everythingAndQueues) { notes in
            let target = DispatchQueue(label: "target"), queue = DispatchQueue(label: "queue", target: target)
            await withCheckedContinuation { done in
                target.async { notes.add("1") }
                queue.async {
                    notes.add("2")
                    done.resume()
                }
            }
        }
    }

    @Test func `runs the blocks of two queues with one target in the order in which they were added`() async throws {
        try await expect(["1", "2", "3"], .everythingAndQueues) { notes in
            let target = DispatchQueue(label: "target")
            let (a, b) = (DispatchQueue(label: "a", target: target), DispatchQueue(label: "b", target: target))
            await withCheckedContinuation { done in
                target.async {
                    a.async { notes.add("1") }
                    b.async { notes.add("2") }
                    target.async {
                        notes.add("3")
                        done.resume()
                    }
                }
            }
        }
    }

    @Test(arguments: [Granularity.jobs, .accesses])
    func `makes a sync behind a queue's own block wait for blocks that the target got earlier`(_ granularity: Granularity)
        async throws
    {
        try await expect(["1", "2", "3", "4", "5"], .everythingAndQueues, granularity) { notes in
            let target = DispatchQueue(label: "target")
            let (a, b) = (DispatchQueue(label: "a", target: target), DispatchQueue(label: "b", target: target))
            a.async { notes.add("1") }
            b.async { notes.add("2") }
            target.async { notes.add("3") }
            a.sync { notes.add("4") }
            a.sync { notes.add("5") }
        }
    }

    @Test(arguments: [Granularity.jobs, .accesses])
    func `makes a sync in a queue wait for its target's pending blocks`(_ granularity: Granularity) async throws {
        try await expect(["1", "2", "3"], .everythingAndQueues, granularity) { notes in
            let target = DispatchQueue(label: "target"), queue = DispatchQueue(label: "queue", target: target)
            target.async { notes.add("1") }
            queue.sync { notes.add("2") }
            target.sync { notes.add("3") }
        }
    }

    @Test func `runs blocks of the main queue and jobs of the main actor in the order in which they were added`() async throws {
        try await expect(["1", "2", "3"], .everythingAndQueues) { notes in
            await withCheckedContinuation { done in
                DispatchQueue.main.async { notes.add("1") }
                Task { @MainActor in notes.add("2") }
                DispatchQueue.main.async {
                    notes.add("3")
                    done.resume()
                }
            }
        }
    }

    /// Foundation's session has a queue whose target is another: in another order it would crash the process.
    @Test func `lets a Foundation session answer from a stub protocol`() async throws {
        for strategy in [Strategy.exhaustive(limit: 60), .mixed(schedules: 60)] {
            try await explore(strategy, driving: .everythingAndQueues) { simulation in
                let configuration = URLSessionConfiguration.ephemeral
                configuration.protocolClasses = [Answering.self]
                let session = URLSession(configuration: configuration)
                guard let url = URL(string: "https://api.example/a") else { return }
                let (data, _) = try await session.data(from: url)
                session.finishTasksAndInvalidate()
                try simulation.require(data == Data("yes".utf8), "\(data)")
            }
        }
    }
    #endif
}

#if os(Linux)
/// Answers each request at once.
private final class Answering: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url, let answer = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
        else { return }
        client?.urlProtocol(self, didReceive: answer, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data("yes".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

private actor Immediate {
    func begin(_ notes: Notes) async {
        let task = Task.immediate {
            notes.add("1")
            await Task.yield()
            notes.add("3")
        }
        notes.add("2")
        await task.value
    }

    func beginDetached(_ notes: Notes) async {
        let task = Task.immediateDetached {
            notes.add("1")
            await Task.yield()
            notes.add("3")
        }
        notes.add("2")
        await task.value
    }
}

@MainActor private func beginOnMain(_ notes: Notes) async {
    let task = Task.immediate {
        notes.add("1")
        await Task.yield()
        notes.add("3")
    }
    notes.add("2")
    await task.value
}

/// Appends numbers, in a later job of its own or at once.
private actor Line {
    private(set) var numbers: [Int] = []

    func send(_ number: Int) { Task { add(number) } }
    func add(_ number: Int) { numbers.append(number) }
}

/// Lets one task in at a time, which waits in a queue while it is inside.
private actor Room {
    private let queue = DispatchQueue(label: "room")
    private let (inside, peak) = (Notes(), Notes())

    nonisolated var most: Int { peak.all.count }

    func enter(after way: String) async {
        work()
        switch way {
        case "handler":
            await withTaskCancellationHandler {
                await pause()
            } onCancel: {
            }
        case "group":
            await withTaskGroup { group in
                group.addTask { await pause() }
                await group.waitForAll()
            }
        case "stream":
            await withTaskGroup { group in
                for _ in 1...2 { group.addTask { await pause() } }
                for await _ in group { work() }
            }
        case "discarding group": await withDiscardingTaskGroup { $0.addTask { await pause() } }
        case "continuation": await withCheckedContinuation { done in Task { done.resume() } }
        default: await Task { await pause() }.value
        }
        work()
    }

    func visit() { work() }

    /// Enters by methods that have nothing before the wait.
    nonisolated func begin(with way: String) async {
        switch way {
        case "handler": await beginWithHandler()
        case "group": await beginWithGroup()
        case "stream": await beginWithStream()
        case "discarding group": await beginWithDiscardingGroup()
        case "continuation": await beginWithContinuation()
        default: await beginWithValue()
        }
    }

    private func beginWithHandler() async {
        await withTaskCancellationHandler {
            await pause()
        } onCancel: {
        }
        work()
    }

    private func beginWithGroup() async {
        await withTaskGroup { group in
            group.addTask { await pause() }
            await group.waitForAll()
        }
        work()
    }

    private func beginWithStream() async {
        for await _ in AsyncStream(unfolding: { nil as Int? }) {}
        work()
    }

    private func beginWithDiscardingGroup() async {
        await withDiscardingTaskGroup { $0.addTask { await pause() } }
        work()
    }

    private func beginWithContinuation() async {
        await withCheckedContinuation { done in Task { done.resume() } }
        work()
    }

    private func beginWithValue() async {
        async let pausing: Void = pause()
        await pausing
        work()
    }

    private func work() {
        inside.enter(peak)
        interleavingPoint("inside")
        queue.sync {}
        interleavingPoint("inside")
        inside.leave()
    }
}

private func pause() async { await Task.yield() }

extension Notes {
    /// Counts one more task; notes a new maximum in `peak`.
    fileprivate func enter(_ peak: Notes) {
        add("one")
        if all.count > peak.all.count { peak.add("more") }
    }

    fileprivate func leave() { removeLast() }
}
#endif
