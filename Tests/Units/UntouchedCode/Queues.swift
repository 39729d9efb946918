import Dispatch
import Foundation

private let mainKey = DispatchSpecificKey<Bool>()

/// Uses the features of Dispatch, and notes after each the seconds since the start.
///
/// - Returns: The features that didn't work as expected.
package func useQueues(_ note: @escaping @Sendable (String) -> Void) async -> [String] {
    let start = DispatchTime.now()
    @Sendable func passed(_ part: String) {
        note("\(part) \((DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds) / 1_000_000_000)")
    }
    let problems = Problems()

    let serial = DispatchQueue(label: "serial")
    let key = DispatchSpecificKey<Int>()
    serial.setSpecific(key: key, value: 7)
    await withCheckedContinuation { done in
        serial.asyncAfter(deadline: .now() + 5) {
            dispatchPrecondition(condition: .onQueue(serial))
            dispatchPrecondition(condition: .notOnQueue(.main))
            problems.expect(DispatchQueue.getSpecific(key: key) == 7, "specific")
            done.resume()
        }
    }
    passed("after")
    await withCheckedContinuation { done in serial.asyncAfter(wallDeadline: .now() + 3) { done.resume() } }
    passed("wall")

    let concurrent = DispatchQueue(label: "concurrent", attributes: .concurrent)
    let group = DispatchGroup()
    let counter = Counter()
    for _ in 1...3 { concurrent.async(group: group) { counter.add(1) } }
    concurrent.async(group: group, flags: .barrier) {
        dispatchPrecondition(condition: .onQueueAsBarrier(concurrent))
        problems.expect(counter.value == 3, "barrier")
    }
    problems.expect(group.wait(timeout: .now() + 10) == .success, "group")
    problems.expect(concurrent.sync { counter.value } == 3, "sync")
    concurrent.sync(flags: .barrier) { counter.add(1) }
    passed("groups")

    let semaphore = DispatchSemaphore(value: 0)
    problems.expect(semaphore.wait(timeout: .now() + 4) == .timedOut, "late")
    DispatchQueue.global().asyncAfter(deadline: .now() + 1) { semaphore.signal() }
    semaphore.wait()
    passed("semaphores")

    let cancelled = DispatchWorkItem { problems.expect(false, "cancelled") }
    serial.asyncAfter(deadline: .now() + 1, execute: cancelled)
    cancelled.cancel()
    let item = DispatchWorkItem { counter.add(1) }
    serial.asyncAfter(deadline: .now() + 2, execute: item)
    item.wait()
    problems.expect(counter.value == 5, "item")
    await withCheckedContinuation { done in item.notify(queue: .main) { done.resume() } }
    passed("items")

    await useMainQueue(problems)
    DispatchQueue.concurrentPerform(iterations: 3) { _ in counter.add(1) }
    problems.expect(counter.value == 8, "concurrentPerform")
    passed("end")
    return problems.all
}

private func useMainQueue(_ problems: Problems) async {
    DispatchQueue.main.setSpecific(key: mainKey, value: true)
    problems.expect(DispatchQueue.getSpecific(key: mainKey) == nil, "specific of main elsewhere")
    await withCheckedContinuation { done in
        DispatchQueue.main.async {
            dispatchPrecondition(condition: .onQueue(.main))
            MainActor.assertIsolated()
            problems.expect(DispatchQueue.getSpecific(key: mainKey) == true, "specific of main")
            DispatchQueue.global().sync { problems.expect(DispatchQueue.getSpecific(key: mainKey) == nil, "inner specific") }
            Task { @MainActor in
                dispatchPrecondition(condition: .onQueue(.main))
                done.resume()
            }
        }
    }
    problems.expect(DispatchQueue.main.sync { MainActor.assumeIsolated { 1 } } == 1, "sync on main")
}

private final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var count = 0

    var value: Int { lock.withLock { count } }
    func add(_ number: Int) { lock.withLock { count += number } }
}

private final class Problems: @unchecked Sendable {
    private let lock = NSLock()
    private var problems: [String] = []

    var all: [String] { lock.withLock { problems } }
    func expect(_ condition: Bool, _ problem: String) {
        if !condition { lock.withLock { problems.append(problem) } }
    }
}
