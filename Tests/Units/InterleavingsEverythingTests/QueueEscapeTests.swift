import Dispatch
import Foundation
import Interleavings
import InterleavingsEverything
import Synchronization
import Testing
import UntouchedCode

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite struct `Where queues are driven` {
    @Test(arguments: [
        ("a source", "made a DispatchSource"), ("a file", "made a DispatchIO"), ("a suspended queue", "suspended a queue"),
        ("an inactive queue", "inactive at first"),
        ("a foreign work item", "a work item that was made outside"), ("a thread", "started a thread"),
        ("a foreign signal", "a thread that the explorer does not drive ended"),
    ])
    func `code that isn't driven is an escape, and is named`(_ way: String, words: String) async throws {
        let foreign = Foreign()
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.random(schedules: 10), driving: .everythingAndQueues) { _ in
                switch way {
                case "a thread": await withCheckedContinuation { done in Thread.detachNewThread { done.resume() } }
                default: leave(way, foreign)
                }
            }
        }
        let problem = failure?.underlying as? ExplorationProblem
        #expect(problem?.code == .escape)
        #expect(problem?.detail.contains(words) == true, "\(problem as Any)")
    }

    @Test func `ordinary tests use the real Dispatch beside an exploration`() async throws {
        let isDone = Mutex(false)
        async let exploring: Void = {
            try await explore(.random(schedules: 300), driving: .everythingAndQueues) { _ in _ = await useQueues { _ in } }
            isDone.withLock { $0 = true }
        }()
        repeat {
            let start = DispatchTime.now()
            await withCheckedContinuation { done in
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(2)) { done.resume() }
            }
            #expect(DispatchTime.now().uptimeNanoseconds - start.uptimeNanoseconds >= 2_000_000)
            #expect(useReally() == 16)
            await withCheckedContinuation { done in
                DispatchQueue.main.async {
                    dispatchPrecondition(condition: .onQueue(.main))
                    MainActor.assertIsolated()
                    done.resume()
                }
            }
        } while !isDone.withLock { $0 }
        try await exploring
    }

    @Test func `a session with a stub answers in virtual time, in many orders`() async throws {
        let summary = try await explore(.random(schedules: 100), driving: .everythingAndQueues) { simulation in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.protocolClasses = [StubProtocol.self]
            let session = URLSession(configuration: configuration)
            let url = try #require(URL(string: "http://example.invalid/"))
            let (data, _) = try await session.data(from: url)
            try simulation.require(String(decoding: data, as: UTF8.self) == "hello", "other data")
            try simulation.require(simulation.clock.now.offset == .seconds(2), "it took \(simulation.clock.now)")
            session.finishTasksAndInvalidate()
        }
        #expect(summary.distinctSchedules > 1)
    }

    @Test func `a task on the global executor is driven too, because that executor uses Dispatch`() async throws {
        try await explore(.random(schedules: 20), driving: .everythingAndQueues) { simulation in
            await Task(executorPreference: globalConcurrentExecutor) { try? await Task.sleep(for: .seconds(3)) }.value
            try simulation.require(simulation.clock.now.offset == .seconds(3), "it took \(simulation.clock.now)")
        }
    }

    @Test func `the executors and queues of an execution are released at its end`() async throws {
        let executor = Mutex<@Sendable () -> (any TaskExecutor)?>({ nil })
        try await explore(.random(schedules: 1), driving: .everythingAndQueues) { simulation in
            let present = simulation.taskExecutor
            executor.withLock { executor in executor = { [weak present] in present } }
            _ = await useQueues { _ in }
        }
        #expect(executor.withLock { $0 }() == nil)
    }

    #if compiler(>=6.3) && (os(Linux) || os(macOS))  // an exit test that captures
    @Test(arguments: 0..<4) func `a wrong precondition still traps`(_ way: Int) async {
        await #expect(processExitsWith: .failure) { [way] in
            try await explore(.random(schedules: 1), driving: .everythingAndQueues) { _ in
                let queue = DispatchQueue(label: "queue")
                switch way {
                case 0: dispatchPrecondition(condition: .onQueue(queue))
                case 1: dispatchPrecondition(condition: .onQueue(.main))
                case 2: queue.sync { dispatchPrecondition(condition: .notOnQueue(queue)) }
                default: await MainActor.run { dispatchPrecondition(condition: .notOnQueue(.main)) }
                }
            }
        }
    }
    #endif
}

/// Objects that were made outside.
///
/// `@unchecked`: one step at a time uses it.
private struct Foreign: @unchecked Sendable {
    let item = DispatchWorkItem {}
    private let isDue = DispatchSemaphore(value: 0)
    private let semaphore = Slot()

    private final class Slot: Sendable {
        let semaphore = Mutex<DispatchSemaphore?>(nil)
    }

    init() {
        let (isDue, slot) = (isDue, semaphore)
        Thread.detachNewThread {
            while true {
                isDue.wait()
                slot.semaphore.withLock { $0 }?.signal()
            }
        }
    }

    /// Lets an outside thread signal a semaphore.
    func signal(_ inner: DispatchSemaphore) {
        semaphore.semaphore.withLock { $0 = inner }
        isDue.signal()
    }
}

private func leave(_ way: String, _ foreign: Foreign) {
    let queue = DispatchQueue(label: "queue")
    switch way {
    case "a source":
        let source = DispatchSource.makeUserDataAddSource(queue: queue)
        source.activate()
        source.cancel()
    case "a file": _ = unsafe DispatchIO(type: .stream, path: "/dev/null", oflag: 0, mode: 0, queue: queue) { _ in }
    case "a suspended queue":
        queue.suspend()
        queue.resume()
    case "an inactive queue": DispatchQueue(label: "inactive", attributes: .initiallyInactive).activate()
    case "a foreign work item":
        queue.async(execute: foreign.item)
        foreign.item.wait()
    default:
        let semaphore = DispatchSemaphore(value: 0)
        foreign.signal(semaphore)
        semaphore.wait()
    }
}

/// Does sixteen pieces of work on real queues; not more, since each that waits needs a thread, and hundreds would block
/// everything else.
private func useReally() -> Int {
    let (group, queue) = (DispatchGroup(), DispatchQueue(label: "real", attributes: .concurrent))
    let (semaphore, count) = (DispatchSemaphore(value: 1), Notes())
    for _ in 1...8 {
        queue.async(group: group) {
            semaphore.wait()
            count.add("")
            semaphore.signal()
        }
    }
    DispatchQueue.concurrentPerform(iterations: 8) { _ in queue.sync { count.add("") } }
    group.wait()
    return count.all.count
}

private final class StubProtocol: URLProtocol {
    /// `@unchecked`: only one block calls the client, as in the loading of a protocol.
    private struct Loading: @unchecked Sendable {
        let loading: StubProtocol
        let url: URL
    }

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url else { return }
        let present = Loading(loading: self, url: url)
        DispatchQueue.global().asyncAfter(deadline: .now() + 2) {
            let loading = present.loading
            if let response = HTTPURLResponse(url: present.url, statusCode: 200, httpVersion: nil, headerFields: nil) {
                loading.client?.urlProtocol(loading, didReceive: response, cacheStoragePolicy: .notAllowed)
            }
            loading.client?.urlProtocol(loading, didLoad: Data("hello".utf8))
            loading.client?.urlProtocolDidFinishLoading(loading)
        }
    }

    override func stopLoading() {}
}
