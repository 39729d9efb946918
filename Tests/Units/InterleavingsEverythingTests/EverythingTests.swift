import Foundation
import Interleavings
import InterleavingsEverything
import Testing
import TokenServiceConcurrency
import UntouchedCode

@Suite struct `Driving everything` {
    @Test(arguments: [Granularity.jobs, .accesses], [TimeModel.whenIdle, .anytime])
    func `puts every kind of task, actor and sleep under control`(_ granularity: Granularity, _ time: TimeModel) async throws {
        try await explore(.random(schedules: 50), time: time, granularity: granularity, driving: .everything) { simulation in
            let notes = Notes()
            try await useEverything { notes.add($0) }
            if time == .whenIdle { try simulation.require(notes.all == Self.expected, "\(notes.all)") }
            try await simulation.settle()
            let isExpected = time == .anytime || simulation.clock.now.offset == .seconds(25)
            try simulation.require(isExpected, "a cancelled sleep moves no time, but it is \(simulation.clock.now)")
        }
    }

    /// Whole seconds: virtual time is exact.
    private static let expected = [
        "sleeps 15", "async let 17", "group 20", "stream 23", "tasks 25", "cancelled 25", "actors true", "end 25", "clocks 25 25",
    ]

    #if os(Linux)
    @Test func `draws the same random numbers in each run, and no number twice`() async throws {
        let runs = Lock<Set<[String]>>([])
        try await explore(.replay(""), driving: .everything) { simulation in
            let all = Array(0..<20)
            let drawn = [
                "\(UUID())", "\(UUID())", "\(UInt64.random(in: 0 ... .max))", "\(UInt64.random(in: 0 ... .max))",
                "\(Double.random(in: 0..<1))", "\(all.shuffled())", "\(all.shuffled())",
            ]
            try simulation.require(Set(drawn).count == drawn.count, "\(drawn)")
            runs.withLock { _ = $0.insert(drawn) }
            await Task.yield()
        }
        // The first schedule runs twice.
        #expect(runs.withLock { $0.count } == 1, "\(runs.withLock { $0 })")
        #expect(UUID() != UUID() && runs.withLock { !$0.contains { $0.contains("\(UInt64.random(in: 0 ... .max))") } })
    }

    @Test func `runs equally many schedules each time, even if tasks start in the order of random keys`() async throws {
        let counts = Lock<Set<Int>>([])
        for _ in 1...3 {
            let summary = try await explore(.exhaustive(), driving: .everything) { simulation in
                let keys = Dictionary(uniqueKeysWithValues: (1...3).map { (UUID(), $0) })
                for (_, number) in keys { simulation.spawn("task \(number)") { await Task.yield() } }
            }
            counts.withLock { _ = $0.insert(summary.schedules) }
        }
        #expect(counts.withLock { $0.count } == 1)
    }
    #endif

    @Test func `finds a race in a plain actor, and none in the repaired one`() async throws {
        await #expect(throws: ScheduleFailure.self) {
            try await explore(driving: .everything) { simulation in
                let server = PriceServer(), cache = PriceCache(server)
                async let one = cache.price()
                async let other = cache.price()
                _ = await (one, other)
                try simulation.require(await server.fetches == 1, "one fetch is enough")
            }
        }
        let summary = try await explore(.exhaustive(), driving: .everything) { simulation in
            let server = PriceServer(), cache = SharedPriceCache(server)
            async let one = cache.price()
            async let other = cache.price()
            _ = await (one, other)
            try simulation.require(await server.fetches == 1, "one fetch is enough")
        }
        #expect(summary.coverage.gaps.isEmpty)
    }

    @Test(arguments: [false, true]) func `finds an old answer that replaces a new one on the main actor`(isMended: Bool)
        async throws
    {
        let summary = try await explore(.exhaustive(), driving: .everything, countsFailures: true) { simulation in
            let model = await SearchModel(checksAgain: isMended)
            await model.type("a")
            try await Task.sleep(for: .seconds(1))
            await model.type("abcd")
            try await simulation.settle()
            let results = await model.results
            try simulation.require(results == "results for abcd", results)
        }
        #expect((summary.failures == 0) == isMended)
        #expect(summary.coverage.gaps.isEmpty)
    }

    @Test(arguments: [false, true]) func `finds callers that pass a limiter at the same time`(isMended: Bool) async throws {
        let summary = try await explore(.random(schedules: 500), driving: .everything, countsFailures: true) { simulation in
            let limiter = Limiter(reserves: isMended)
            let times = await withTaskGroup(of: ContinuousClock.Instant.self) { group in
                for _ in 1...3 { group.addTask { await limiter.pass() } }
                return await group.reduce(into: []) { $0.append($1) }.sorted()
            }
            let gaps = zip(times, times.dropFirst()).map { $0.duration(to: $1) }
            try simulation.require(gaps.allSatisfy { $0 >= .seconds(1) }, "\(gaps)")
        }
        #expect((summary.failures == 0) == isMended)
    }

    @Test func `keeps an actor isolated after every kind of suspension`() async throws {
        try await explore(.random(schedules: 200), driving: .everything) { simulation in
            let actor = Careful()
            let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
            async let counting: Void = actor.count(stream)
            async let suspending: Void = actor.suspendInManyWays()
            for number in 1...3 { continuation.yield(number) }
            continuation.finish()
            _ = try await (counting, suspending)
            let sum = await actor.sum
            try simulation.require(sum == 13, "the sum is \(sum)")
        }
    }

    @Test func `leaves a task asleep that would never end, and the execution ends`() async throws {
        let summary = try await explore(.random(schedules: 20), driving: .everything) { simulation in
            Task { while true { try? await Task.sleep(for: .seconds(1)) } }
            Task { try await Task.sleep(for: .seconds(1_000)) }
            try await Task.sleep(for: .seconds(10))
            try simulation.require(simulation.clock.now.offset == .seconds(10), "\(simulation.clock.now)")
        }
        #expect(summary.failures == 0)
    }

    #if os(Linux) || os(macOS)
    @Test func `lets code with a wrong isolation precondition trap`() async {
        await #expect(processExitsWith: .failure) {
            try await explore(.random(schedules: 1), driving: .everything) { _ in PriceServer().preconditionIsolated() }
        }
        await #expect(processExitsWith: .failure) {
            try await explore(.random(schedules: 1), driving: .everything) { _ in MainActor.preconditionIsolated() }
        }
        await #expect(processExitsWith: .failure) {
            try await explore(.random(schedules: 1), driving: .everything) { _ in await Careful().check(Careful()) }
        }
    }
    #endif
}

extension Careful {
    func check(_ other: Careful) { other.assumeIsolated { _ in } }
}

/// Notes of several tasks, in order.
final class Notes: Sendable {
    // Not a `Mutex`: if threads contend for it, Thread Sanitizer doesn't see their order.
    private let notes = Lock<[String]>([])

    var all: [String] { notes.withLock { $0 } }

    func add(_ note: String) {
        notes.withLock { $0.append(note) }
    }

    func removeLast() { notes.withLock { _ = $0.removeLast() } }
}
