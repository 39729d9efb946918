#if os(Linux)
import Dispatch
import Foundation
import Interleavings
import Synchronization
import TokenServiceConcurrency

private enum Request {
    @TaskLocal static var number = 0
}

extension Program {
    static let ofTasks = [
        Program("a map of at most two at once that keeps the order", .preferred) { simulation, sum in
            simulation.spawn("maps") {
                let inside = Held(0), most = Held(0)
                let results = await withTaskGroup(of: (Int, Int).self) { group in
                    var results = [Int](repeating: 0, count: 5)
                    for number in 0..<5 {
                        if number >= 2, let (index, value) = await group.next() { results[index] = value }
                        group.addTask {
                            let now = inside.with { inside in
                                inside += 1
                                return inside
                            }
                            most.with { $0 = max($0, now) }
                            await Task.yield()
                            inside.add(-1)
                            return (number, number * number)
                        }
                    }
                    for await (index, value) in group { results[index] = value }
                    return results
                }
                sum.add(results == [0, 1, 4, 9, 16] && most.now <= 2 ? 1 : 0)
            }
            return 1
        },
        Program("groups in groups", .preferred) { simulation, sum in
            simulation.spawn("outer") {
                await withTaskGroup { group in
                    for _ in 1...2 {
                        group.addTask {
                            await withTaskGroup { inner in for _ in 1...2 { inner.addTask { sum.add(1) } } }
                        }
                    }
                }
            }
            return 4
        },
        Program("a group that keeps no results", .preferred) { simulation, sum in
            simulation.spawn("serves") {
                await withDiscardingTaskGroup { group in
                    for _ in 1...4 {
                        group.addTask {
                            await Task.yield()
                            sum.add(1)
                        }
                    }
                }
                sum.add(10)
            }
            return 14
        },
        Program("two phases", .preferred) { simulation, sum in
            simulation.spawn("phases") {
                await withTaskGroup { group in
                    let first = Held(0)
                    for _ in 1...3 {
                        group.addTask {
                            await Task.yield()
                            first.add(1)
                        }
                    }
                    await group.waitForAll()
                    for _ in 1...2 { group.addTask { sum.add(first.now) } }
                }
            }
            return 6
        },
        Program("a tree of child tasks", .preferred) { simulation, sum in
            @Sendable func total(_ depth: Int) async -> Int {
                if depth == 0 { return 1 }
                async let left = total(depth - 1)
                async let right = total(depth - 1)
                return await left + right
            }
            simulation.spawn("root") { sum.add(await total(3)) }
            return 8
        },
        Program("a first error that cancels the others", .everything) { simulation, sum in
            simulation.spawn("fails") {
                do {
                    try await withThrowingTaskGroup { group in
                        for _ in 1...2 {
                            group.addTask {
                                defer { sum.add(1) }
                                try await Task.sleep(for: .seconds(1_000))
                            }
                        }
                        group.addTask { throw Refused() }
                        try await group.waitForAll()
                    }
                } catch { sum.add(error is Refused ? 10 : 0) }
            }
            return 12
        },
        Program("a child that its scope cancels", .everything) { simulation, sum in
            simulation.spawn("leaves") {
                do {
                    async let child: Void = Task.sleep(for: .seconds(1_000))
                    sum.add(1)
                    try refuse()
                    try await child
                } catch { sum.add(1) }
                sum.add(1)
            }
            return 3
        },
        Program("a cleanup in a task that nobody cancels", .everything) { simulation, sum in
            simulation.spawn("leaves") {
                let work = Task {
                    defer { sum.add(1) }
                    try? await Task.sleep(for: .seconds(1_000))
                    await Task { sum.add(Task.isCancelled ? 0 : 1) }.value
                }
                await Task.yield()
                work.cancel()
                await work.value
            }
            return 2
        },
        Program("a limit of time, and work that keeps it", .everything) { simulation, sum in
            simulation.spawn("waits") {
                let isInTime = await withTaskGroup(of: Bool.self) { group in
                    group.addTask { (try? await Task.sleep(for: .seconds(1))) != nil }
                    group.addTask { (try? await Task.sleep(for: .seconds(5))) == nil }
                    defer { group.cancelAll() }
                    return await group.next() ?? false
                }
                sum.add(isInTime ? 1 : 0)
            }
            return 1
        },
        Program("a loop that asks whether it is cancelled", .everything) { simulation, sum in
            simulation.spawn("cancels") {
                let loop = Task {
                    while true {
                        try Task.checkCancellation()
                        await Task.yield()
                    }
                }
                await Task.yield()
                loop.cancel()
                if case .failure(let error) = await loop.result, error is CancellationError { sum.add(1) }
            }
            return 1
        },
        Program("a task cancelled before it begins", .everything) { simulation, sum in
            simulation.spawn("cancels") {
                let task = Task { Task.isCancelled }
                task.cancel()
                let told = Held(0)
                let other = Task {
                    await withTaskCancellationHandler {
                        while !Task.isCancelled { await Task.yield() }
                    } onCancel: {
                        told.add(1)
                    }
                }
                other.cancel()
                await other.value
                _ = await task.value
                sum.add(told.now)
            }
            return 1
        },
        Program("a callback that a cancellation ends", .queues) { simulation, sum in
            simulation.spawn("cancels") {
                let call = CancellableCall()
                let task = Task { await call.result() }
                await Task.yield()
                task.cancel()
                _ = await task.value
                sum.add(call.answers)
            }
            return 1
        },
        Program("a value of a task that its children have", .preferred) { simulation, sum in
            for number in 1...2 {
                simulation.spawn("request \(number)") {
                    await Request.$number.withValue(number) {
                        async let child = Request.number
                        await Task.yield()
                        let own = Request.number
                        sum.add(await child == own ? own : 100)
                    }
                }
            }
            return 3
        },
        Program("a value of a task that a detached one lacks", .everything) { simulation, sum in
            simulation.spawn("detaches") {
                await Request.$number.withValue(5) {
                    let heir = Task { Request.number }
                    let other = Task.detached { Request.number }
                    sum.add(await heir.value + 10 * (await other.value))
                }
            }
            return 5
        },
        Program("priorities that change no result", .everything) { simulation, sum in
            for (name, priority) in [("low", TaskPriority.low), ("high", .high), ("background", .background)] {
                simulation.spawn(name) {
                    await Task(priority: priority) {
                        await Task.yield()
                        sum.add(1)
                    }.value
                }
            }
            return 3
        },
        Program("a race of two answers, the first of which counts", .everything) { simulation, sum in
            simulation.spawn("asks") {
                let isAnswered = Flag()
                await withCheckedContinuation { continuation in
                    for _ in 1...2 {
                        Task {
                            if isAnswered.set() { continuation.resume() }
                        }
                    }
                }
                sum.add(1)
            }
            return 1
        },
        Program("work that begins once", .preferred) { simulation, sum in
            let hasBegun = Flag()
            for name in ["a", "b", "c"] {
                simulation.spawn(name) {
                    await Task.yield()
                    if hasBegun.set() { sum.add(1) }
                }
            }
            return 1
        },
        Program("a flag awaited by yielding", .preferred) { simulation, sum in
            let isReady = Flag()
            simulation.spawn("waits") {
                while !isReady.isSet { await Task.yield() }
                sum.add(1)
            }
            simulation.spawn("readies") {
                await Task.yield()
                _ = isReady.set()
            }
            return 1
        },
        Program("sleeps that end in order", .preferred) { simulation, sum in
            for number in 1...3 {
                simulation.spawn("sleeps \(number)") {
                    try await simulation.clock.sleep(for: .seconds(number))
                    sum.with { $0 = $0 * 10 + number }
                }
            }
            return 123
        },
    ]
}

private final class CancellableCall: Sendable {
    private struct State: Sendable {
        var continuation: CheckedContinuation<Void, Never>?
        var isOver = false
        var answers = 0
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "client")

    var answers: Int { state.withLock { $0.answers } }

    func result() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if !state.isOver { state.continuation = continuation } else { state.answers += 1 }
                    return state.isOver
                }
                if isOver { return continuation.resume() }
                queue.asyncAfter(deadline: .now() + 1) { self.end() }
            }
        } onCancel: {
            end()
        }
    }

    private func end() {
        let continuation = state.withLock { state in
            state.isOver = true
            defer { state.continuation = nil }
            if state.continuation != nil { state.answers += 1 }
            return state.continuation
        }
        continuation?.resume()
    }
}
#endif
