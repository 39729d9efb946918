import Foundation
import Interleavings
import InterleavingsEverything

/// Counts the schedules that the explorer runs in a second in each way of driving code, and the memory that a process takes at most.
///
/// A program of its own, since linking `InterleavingsEverything` replaces functions of the runtime.
@main enum Driven {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count <= 1, let schedules = Int(arguments.first ?? "20000"), schedules > 0 else {
            FileHandle.standardError.write(Data("usage: driven [SCHEDULES]\n".utf8))
            exit(64)
        }
        // Where queues are driven each step has a thread of its own, which takes long.
        let ways: [(String, Driving, Int)] = [
            ("preferred", .preferred, schedules), ("everything", .everything, schedules),
            ("everythingAndQueues", .everythingAndQueues, max(schedules / 50, 1)),
        ]
        print("| driving | schedules | in a second | of the preferred way | most memory, MiB |\n|---|---:|---:|---:|---:|")
        var preferred = 0.0
        for (name, way, schedules) in ways {
            try await explore(.random(schedules: 100), driving: way, fourTasks)
            let start = ContinuousClock.now
            try await explore(.random(schedules: schedules), driving: way, fourTasks)
            let rate = Double(schedules) / (start.duration(to: .now) / .seconds(1))
            if preferred == 0 { preferred = rate }
            let memory = mostMemory.map { "\($0)" } ?? ""
            print("| \(name) | \(schedules) | \(Int(rate)) | \(Int((rate / preferred * 100).rounded())) % | \(memory) |")
        }
    }

    /// Four tasks that call an actor and stop once in between.
    private static func fourTasks(_ simulation: Simulation) async throws {
        let counter = Counter()
        for number in 1...4 {
            simulation.spawn("task \(number)") {
                await counter.add(number)
                await Task.yield()
                await counter.add(number)
            }
        }
        try await simulation.settle()
        try simulation.require(await counter.sum == 20, "an addition is lost")
    }

    /// The process's largest resident memory; `nil` where the system doesn't say.
    private static var mostMemory: Int? {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 / 1024 }
    }
}

private actor Counter {
    private(set) var sum = 0

    func add(_ number: Int) { sum += number }
}
