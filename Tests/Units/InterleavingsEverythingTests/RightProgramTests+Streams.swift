#if os(Linux)
import Dispatch
import Foundation
import Interleavings
import Synchronization
import TokenServiceConcurrency

extension Program {
    static let ofStreams = [
        Program("a broadcast to subscribers", .everything) { simulation, sum in
            let hub = Hub()
            let streams = (1...3).map { _ in hub.subscribe() }
            for (number, stream) in streams.enumerated() {
                simulation.spawn("reads \(number)") { for await value in stream { sum.add(value) } }
            }
            simulation.spawn("sends") {
                for number in 1...3 { hub.send(number) }
                hub.finish()
            }
            return 18
        },
        Program("a subscriber that leaves its registry", .everything) { simulation, sum in
            let hub = Hub()
            simulation.spawn("leaves") {
                let stream = hub.subscribe()
                let reader = Task { for await _ in stream {} }
                await Task.yield()
                reader.cancel()
                await reader.value
                sum.add(hub.count)
            }
            return 0
        },
        Program("a stream of a current value", .everything) { simulation, sum in
            let (stream, source) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
            simulation.spawn("writes") {
                for number in 1...4 {
                    source.yield(number)
                    await Task.yield()
                }
                source.finish()
            }
            simulation.spawn("reads") {
                var last = 0
                for await number in stream where number > last { last = number }
                sum.add(last)
            }
            return 4
        },
        Program("a stream that fails", .everything) { simulation, sum in
            let (stream, source) = AsyncThrowingStream.makeStream(of: Int.self)
            simulation.spawn("writes") {
                source.yield(1)
                source.yield(2)
                source.finish(throwing: Refused())
            }
            simulation.spawn("reads") {
                do { for try await number in stream { sum.add(number) } } catch { sum.add(error is Refused ? 10 : 0) }
            }
            return 13
        },
        Program("an unfolding stream", .everything) { simulation, sum in
            simulation.spawn("reads") {
                let left = Held(3)
                let stream = AsyncStream<Int> {
                    await Task.yield()
                    let number = left.with { left in
                        defer { left -= 1 }
                        return left
                    }
                    return number > 0 ? number : nil
                }
                for await number in stream { sum.add(number) }
            }
            return 6
        },
        Program("a merge by a group", .everything) { simulation, sum in
            simulation.spawn("merges") {
                let (merged, output) = AsyncStream.makeStream(of: Int.self)
                let sources = [[1, 3], [2, 4]]
                async let all: Void = withTaskGroup { group in
                    for source in sources {
                        group.addTask {
                            for number in source {
                                output.yield(number)
                                await Task.yield()
                            }
                        }
                    }
                    await group.waitForAll()
                    output.finish()
                }
                for await number in merged { sum.add(number) }
                await all
            }
            return 10
        },
        Program("a zip by two child tasks", .everything) { simulation, sum in
            let (one, first) = AsyncStream.makeStream(of: Int.self), (other, second) = AsyncStream.makeStream(of: Int.self)
            simulation.spawn("one") {
                for number in 1...3 {
                    first.yield(number)
                    await Task.yield()
                }
                first.finish()
            }
            simulation.spawn("other") {
                for number in 1...3 { second.yield(number) }
                second.finish()
            }
            simulation.spawn("zips") {
                async let left = one.reduce(into: [Int]()) { $0.append($1) }
                async let right = other.reduce(into: [Int]()) { $0.append($1) }
                for (a, b) in zip(await left, await right) { sum.add(a * b) }
            }
            return 14
        },
        Program("a debounce that cancels the task before", .everything) { simulation, sum in
            simulation.spawn("types") {
                var latest: Task<Void, Never>?
                for number in 1...3 {
                    latest?.cancel()
                    latest = Task {
                        guard (try? await Task.sleep(for: .seconds(1))) != nil else { return }
                        sum.add(number)
                    }
                    await Task.yield()
                }
                await latest?.value
            }
            return 3
        },
        Program("a throttle by the clock", .preferred) { simulation, sum in
            simulation.spawn("scrolls") {
                var next = simulation.clock.now
                for _ in 1...6 {
                    if simulation.clock.now >= next {
                        sum.add(1)
                        next = simulation.clock.now.advanced(by: .seconds(3))
                    }
                    try await simulation.clock.sleep(for: .seconds(1))
                }
            }
            return 2
        },
        Program("batches of three", .everything) { simulation, sum in
            let (stream, source) = AsyncStream.makeStream(of: Int.self)
            simulation.spawn("writes") {
                for number in 1...7 {
                    source.yield(number)
                    if number == 4 { await Task.yield() }
                }
                source.finish()
            }
            simulation.spawn("sends batches") {
                var batch: [Int] = []
                for await number in stream {
                    batch.append(number)
                    guard batch.count == 3 else { continue }
                    sum.add(100)
                    batch = []
                }
                sum.add(batch.count)
            }
            return 201
        },
        Program("a channel with room for one", .preferred) { simulation, sum in
            let channel = BoundedChannel(1)
            simulation.spawn("sends") {
                for number in 1...4 { await channel.send(number) }
                await channel.finish()
            }
            simulation.spawn("receives") { while let number = await channel.next() { sum.add(number) } }
            return 10
        },
        Program("two receivers of a channel", .preferred) { simulation, sum in
            let channel = BoundedChannel(2)
            simulation.spawn("sends") {
                for number in 1...4 { await channel.send(number) }
                await channel.finish()
            }
            for name in ["receives", "receives too"] {
                simulation.spawn(name) { while let number = await channel.next() { sum.add(number) } }
            }
            return 10
        },
        Program("a reader that stops early and tells its writer", .everything) { simulation, sum in
            let (stream, source) = AsyncStream.makeStream(of: Int.self)
            let isOpen = Held(true)
            source.onTermination = { _ in isOpen.with { $0 = false } }
            simulation.spawn("writes") {
                var number = 0
                while isOpen.now {
                    number += 1
                    source.yield(number)
                    try await Task.sleep(for: .seconds(1))
                }
                sum.add(1)
            }
            simulation.spawn("reads two") {
                let reader = Task { for await number in stream where number == 2 { break } }
                await reader.value
                source.finish()
                sum.add(1)
            }
            return 2
        },
        Program("polls until they are cancelled", .everything) { simulation, sum in
            simulation.spawn("polls") {
                let polls = Task {
                    while !Task.isCancelled {
                        sum.with { $0 = 1 }
                        try? await Task.sleep(for: .seconds(10))
                    }
                }
                try await Task.sleep(for: .seconds(25))
                polls.cancel()
                await polls.value
            }
            return 1
        },
        Program("retries with a growing pause", .preferred) { simulation, sum in
            simulation.spawn("retries") {
                for attempt in 0..<4 {
                    do {
                        if attempt < 3 { throw Refused() }
                        return sum.add(attempt)
                    } catch { try await simulation.clock.sleep(for: .seconds(1 << attempt)) }
                }
            }
            return 3
        },
        Program("a stream of what a queue delivers", .queues) { simulation, sum in
            let queue = DispatchQueue(label: "delegate")
            let (stream, source) = AsyncStream.makeStream(of: Int.self)
            for number in 1...3 { simulation.spawn("delivers \(number)") { queue.async { source.yield(number) } } }
            simulation.spawn("reads") {
                var count = 0
                for await number in stream {
                    sum.add(number)
                    count += 1
                    if count == 3 { return }
                }
            }
            return 6
        },
    ]
}

private final class Hub: Sendable {
    private let subscribers = Mutex<[Int: AsyncStream<Int>.Continuation]>([:])
    private let nextID = Atomic(0)

    var count: Int { subscribers.withLock { $0.count } }

    func subscribe() -> AsyncStream<Int> {
        let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
        let id = nextID.add(1, ordering: .relaxed).newValue
        subscribers.withLock { $0[id] = continuation }
        continuation.onTermination = { [weak self] _ in _ = self?.subscribers.withLock { $0.removeValue(forKey: id) } }
        return stream
    }

    func send(_ value: Int) {
        for subscriber in subscribers.withLock({ Array($0.values) }) { subscriber.yield(value) }
    }

    func finish() {
        let all = subscribers.withLock { Array($0.values) }
        for subscriber in all { subscriber.finish() }
    }
}

private actor BoundedChannel {
    private let capacity: Int
    private var buffer: [Int] = []
    private var isFinished = false
    private var senders: [CheckedContinuation<Void, Never>] = []
    private var receivers: [CheckedContinuation<Int?, Never>] = []

    init(_ capacity: Int) {
        self.capacity = capacity
    }

    func send(_ number: Int) async {
        if !receivers.isEmpty { return receivers.removeFirst().resume(returning: number) }
        while buffer.count >= capacity { await withCheckedContinuation { senders.append($0) } }
        if !receivers.isEmpty { return receivers.removeFirst().resume(returning: number) }
        buffer.append(number)
    }

    func next() async -> Int? {
        if !buffer.isEmpty {
            defer { if !senders.isEmpty { senders.removeFirst().resume() } }
            return buffer.removeFirst()
        }
        if isFinished { return nil }
        return await withCheckedContinuation { receivers.append($0) }
    }

    func finish() {
        isFinished = true
        for receiver in receivers { receiver.resume(returning: nil) }
        receivers = []
    }
}
#endif
