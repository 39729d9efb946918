import Foundation

@globalActor package actor Disk {
    package static let shared = Disk()
}

@Disk private func isOnDisk() -> Bool {
    Disk.shared.assertIsolated()
    return true
}

private func isOnMainActor() -> Bool { MainActor.assumeIsolated { true } }

/// Uses the features of Swift concurrency, and notes after each the seconds since the start.
package func useEverything(_ note: @escaping @Sendable (String) -> Void) async throws {
    let start = (clock: ContinuousClock.now, suspending: SuspendingClock.now, date: Date())
    func passed(_ part: String) { note("\(part) \(start.clock.duration(to: .now).components.seconds)") }

    try await Task.sleep(for: .seconds(1))
    try await Task.sleep(nanoseconds: 2_000_000_000)
    try await Task.sleep(until: .now + .seconds(3), clock: .continuous)
    try await SuspendingClock().sleep(until: .now + .seconds(4))
    let clock: any Clock<Duration> = ContinuousClock()
    try await clock.sleep(for: .seconds(5))
    passed("sleeps")

    async let short: Void = rest(1)
    async let long: Void = rest(2)
    _ = try await (short, long)
    passed("async let")

    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await rest(60) }
        group.addTask { try await rest(3) }
        try await group.next()
        group.cancelAll()
    }
    passed("group")

    let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
    Task {
        for number in 1...3 {
            try await rest(1)
            continuation.yield(number)
        }
        continuation.finish()
    }
    for await _ in stream {}
    passed("stream")

    try await Task.detached(priority: .background) { try await rest(1) }.value
    try await Task.immediate { try await rest(1) }.value
    passed("tasks")

    let sleeper = Task { try await rest(100) }
    sleeper.cancel()
    _ = await sleeper.result
    passed("cancelled")

    await MainActor.run { MainActor.assertIsolated() }
    let isOnMain = await Task { @MainActor in isOnMainActor() }.value
    note("actors \(await isOnDisk() && isOnMain)")
    passed("end")
    let (suspending, date) = (start.suspending.duration(to: .now), Date().timeIntervalSince(start.date))
    note("clocks \(suspending.components.seconds) \(Int(date.rounded()))")
}

private func rest(_ seconds: Int) async throws {
    try await Task.sleep(for: .seconds(seconds))
}

/// Checks that it is isolated after each suspension.
package actor Careful {
    package private(set) var sum = 0

    package init() {}

    package func count(_ stream: AsyncStream<Int>) async {
        for await number in stream {
            preconditionIsolated()
            sum += number
        }
    }

    package func suspendInManyWays() async throws {
        try await withTaskCancellationHandler {
            try await Task.sleep(for: .seconds(1))
            preconditionIsolated()
        } onCancel: {
        }
        await withCheckedContinuation { continuation in
            assertIsolated()
            Task {
                preconditionIsolated()
                continuation.resume()
            }
        }
        preconditionIsolated()
        sum += await withTaskGroup(of: Int.self) { group in
            for number in 1...3 { group.addTask { number } }
            var sum = 0
            for await number in group {
                preconditionIsolated()
                sum += number
            }
            return sum
        }
        await Task.yield()
        addOne()
    }

    private nonisolated func addOne() {
        assumeIsolated { $0.sum += 1 }
    }
}
