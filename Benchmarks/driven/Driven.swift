import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything

/// Counts the schedules that the explorer runs in a second in each way of driving code, and the memory that a process takes at most;
/// or explores one scenario, for a tool that counts instructions.
///
/// A program of its own, since linking `InterleavingsEverything` replaces functions of the runtime.
@main enum Driven {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let scenario = arguments.count == 2 ? scenarios[arguments[0]] : nil
        guard let schedules = Int(arguments.last ?? "20000"), schedules > 0, arguments.count < 2 || scenario != nil else {
            let names = scenarios.keys.sorted().joined(separator: ", ")
            FileHandle.standardError.write(Data("usage: driven [NAME] [SCHEDULES], where NAME is one of: \(names)\n".utf8))
            exit(64)
        }
        // Not an asynchronous `main`: callgrind doesn't survive the end of the first thread.
        let isDone = DispatchSemaphore(value: 0)
        Task.detached {
            do {
                if let (driving, scenario) = scenario {
                    try await explore(.random(schedules: schedules), driving: driving, scenario)
                } else {
                    try await compare(schedules)
                }
                exit(0)
            } catch {
                FileHandle.standardError.write(Data("\(error)\n".utf8))
                exit(1)
            }
        }
        isDone.wait()
    }

    private static func compare(_ schedules: Int) async throws {
        // Where queues are driven each step has a thread of its own, which takes long.
        let ways: [(String, Driving, Int)] = [
            ("preferred", .preferred, schedules), ("everything", .everything, schedules),
            ("everythingAndQueues", .everythingAndQueues, max(schedules / 50, 1)),
        ]
        print("| driving | schedules | in a second | of the preferred way | most memory, MiB |\n|---|---:|---:|---:|---:|")
        var preferred = 0.0
        for (name, way, schedules) in ways {
            try await explore(.random(schedules: 100), driving: way, actor(4))
            let start = ContinuousClock.now
            try await explore(.random(schedules: schedules), driving: way, actor(4))
            let rate = Double(schedules) / (start.duration(to: .now) / .seconds(1))
            if preferred == 0 { preferred = rate }
            let memory = mostMemory.map { "\($0)" } ?? ""
            print("| \(name) | \(schedules) | \(Int(rate)) | \(Int((rate / preferred * 100).rounded())) % | \(memory) |")
        }
    }

    /// The process's largest resident memory; `nil` where the system doesn't say.
    private static var mostMemory: Int? {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 / 1024 }
    }
}

private typealias Scenario = @Sendable (Simulation) async throws -> Void

/// In none of them a thread stops inside a step, since how often such steps are looked at depends on the time they take.
private let scenarios: [String: (Driving, Scenario)] = [
    "preferred": (.preferred, actor(4)), "everything": (.everything, actor(4)), "many": (.preferred, actor(20)),
    "sleeps": (.preferred, sleeps), "locks": (.everything, plainLock),
]

/// Tasks that call an actor and stop once in between.
private func actor(_ count: Int) -> Scenario {
    { simulation in
        let counter = Counter()
        for number in 1...count {
            simulation.spawn("task \(number)") {
                await counter.add(1)
                await Task.yield()
                await counter.add(1)
            }
        }
        try await simulation.settle()
        try simulation.require(await counter.sum == 2 * count, "an addition is lost")
    }
}

private let sleeps: Scenario = { simulation in
    let counter = Counter()
    for number in 1...4 {
        simulation.spawn("task \(number)") {
            for _ in 1...3 {
                try await simulation.clock.sleep(for: .seconds(number))
                await counter.add(1)
            }
        }
    }
    try await simulation.settle()
    try simulation.require(await counter.sum == 12, "an addition is lost")
}

private let plainLock: Scenario = { simulation in
    let lock = NSLock(), counter = Counter()
    for number in 1...3 {
        simulation.spawn("task \(number)") {
            for _ in 1...10 { lock.withLock {} }
            await counter.add(1)
        }
    }
    try await simulation.settle()
    try simulation.require(lock.withLock { true }, "the lock is held")
    try simulation.require(await counter.sum == 3, "an addition is lost")
}

private actor Counter {
    private(set) var sum = 0

    func add(_ number: Int) { sum += number }
}
