import AccessTokens
import AccessTokensDispatch
import AccessTokensKeys
import AccessTokensTesting
import Dispatch
import Foundation
import RaceGallery
import Testing
import TokenServiceConcurrency

/// The synchronous wrapper of old programs, on real threads: each test holds threads of its process, and so has one of its own.
@Suite struct `Callers that block a thread` {
    @Test func `callers that block a thread are all answered, as with stage 3, on every kind of thread`() async {
        await #expect(processExitsWith: .success) {
            for place in Place.allCases {
                for count in [2, 50] {
                    let stage3 = ThreadSafeTokenService(loader: PromptLoader())
                    let answered = await place.block(count) { stage3.retrieveToken(then: $0) }
                    for asyncCallers in [0, 4] {
                        let shim = AccessTokenService(loader: PromptLoader())
                        let other = TokenService(loader: PromptLoader().tokenLoader)
                        let others = ask(shim.service, callers: asyncCallers) + ask(other, callers: asyncCallers)
                        #expect(await place.block(count) { shim.retrieveToken(then: $0) } == answered, "\(place), \(count)")
                        #expect(answered == count)
                        for other in others { #expect(await other.value == "a") }
                    }
                }
            }
        }
    }

    @Test func `a shim over an existing service, also one of a key, answers callers that block a thread`() async {
        await #expect(processExitsWith: .success) {
            let services = TokenServices<Int> { _ in PromptLoader().tokenLoader }
            for service in [TokenService(loader: PromptLoader().tokenLoader), services[1]] {
                let others = ask(service, callers: 4), shim = AccessTokenService(service: service)
                #expect(await Place.tasks.block(50) { shim.retrieveToken(then: $0) } == 50)
                for other in others { #expect(await other.value == "a") }
            }
        }
    }

    @Test func `an async loader and a store with an executor serve callers that block all threads`() async {
        await #expect(processExitsWith: .success) {
            let environment = TokenService.Environment(loadExecutor: QueueExecutor()), store = ScriptedStore()
            let service = TokenService(store: store, environment: environment) { _ in .hour("a") }
            let shim = AccessTokenService(service: service)
            #expect(await Place.tasks.block(50) { shim.retrieveToken(then: $0) } == 50)
        }
    }

    @Test func `a loader that blocks its thread delays no limit`() async {
        await #expect(processExitsWith: .success) {
            let loader = BlockingLoader(), shim = AccessTokenService(loader: loader), start = ContinuousClock.now
            let error = await withCheckedContinuation { answered in
                shim.retrieveToken(within: .milliseconds(200)) { answered.resume(returning: $0.code) }
            }
            #expect(error == .deadlineExceeded)
            #expect(ContinuousClock.now - start < .seconds(5))
            loader.goOn.signal()
        }
    }

    @Test func `callers that block all threads delay no limit of a call or load, and no sign-out`() async {
        await #expect(processExitsWith: .success) {
            let silent = ScriptedLoader(), policy = RefreshPolicy(loadTimeout: .milliseconds(400))
            let hasty = AccessTokenService(loader: silent), patient = AccessTokenService(loader: silent, policy: policy)
            let pool = BlockedPool(), start = ContinuousClock.now, answers = DispatchQueue(label: "answers")
            let codes = Log<TokenServiceError.Code?>(), all = DispatchGroup()
            for _ in 1...3 { all.enter() }
            hasty.retrieveToken(within: .milliseconds(200)) { result in
                codes.append(result.code)
                all.leave()
            }
            patient.retrieveToken { result in
                codes.append(result.code)
                // The test's own task needs a thread of the pool.
                patient.reset { _ in all.leave() }
                all.leave()
            }
            let seconds = await withCheckedContinuation { ended in
                all.notify(queue: answers) {
                    ended.resume(returning: ContinuousClock.now - start)
                    pool.release()
                }
            }
            #expect(codes.entries == [.deadlineExceeded, .loadTimedOut])
            // 0.6 s for each is generous on a busy machine; without limits of their own they'd have waited for the pool.
            #expect(seconds < .seconds(5))
        }
    }

    @Test func `callers that block all threads delay no sign-out through a key that shares its grant`() async {
        await #expect(processExitsWith: .success) {
            let services = TokenServices<Int>(grant: { _ in 0 }) { _ in PromptLoader().tokenLoader }
            let shim = AccessTokenService(service: services[1]), pool = BlockedPool(), start = ContinuousClock.now
            DispatchQueue(label: "give up").asyncAfter(deadline: .now() + 20) { pool.release() }
            let seconds = await withCheckedContinuation { ended in
                shim.reset { _ in
                    ended.resume(returning: ContinuousClock.now - start)
                    pool.release()
                }
            }
            #expect(seconds < .seconds(10))
        }
    }

    @Test func `an async caller's limit takes effect although the pool is blocked`() async {
        await #expect(processExitsWith: .success) {
            let loader = ScriptedLoader(), service = TokenService(loader: loader.tokenLoader)
            let caller = Task { try await service.retrieveToken(within: .milliseconds(200)) }
            let load = try await loader.nextCall(), pool = BlockedPool()
            DispatchQueue(label: "network").asyncAfter(deadline: .now() + 1) {
                load.succeed(with: .hour("a"))
                pool.release()
            }
            let error = await #expect(throws: TokenServiceError.self) { try await caller.value }
            #expect(error?.code == .deadlineExceeded)
        }
    }
}

/// Where callers wait with a semaphore.
private enum Place: CaseIterable {
    case globalQueue, tasks, operations, taskPriorities, queuePriorities

    /// Returns how many callers were answered within ten seconds.
    func block(_ count: Int, asking ask: @escaping @Sendable (@escaping AccessTokenService.Handler) -> Void) async -> Int {
        let answered = Log<Int>(), all = DispatchGroup(), operations = OperationQueue()
        for number in 0..<count {
            all.enter()
            let wait = { @Sendable in
                let token = DispatchSemaphore(value: 0)
                ask { _ in token.signal() }
                if token.wait(timeout: .now() + 10) == .success { answered.append(number) }
                all.leave()
            }
            switch self {
            case .globalQueue: DispatchQueue.global().async(execute: wait)
            case .tasks: Task { wait() }
            case .operations: operations.addOperation(wait)
            case .taskPriorities: Task(priority: [.background, .low, .medium, .high][number % 4]) { wait() }
            case .queuePriorities:
                let classes: [DispatchQoS.QoSClass] = [.background, .utility, .default, .userInitiated]
                DispatchQueue.global(qos: classes[number % 4]).async(execute: wait)
            }
        }
        await withCheckedContinuation { ended in all.notify(queue: DispatchQueue(label: "end")) { ended.resume() } }
        return answered.entries.count
    }
}

/// Holds all threads of Swift's pool, and of Dispatch's concurrent queues, until it is released.
private final class BlockedPool: Sendable {
    private static let threads = 300
    private let end = DispatchSemaphore(value: 0)

    init() {
        let begun = DispatchSemaphore(value: 0)
        for _ in 0..<Self.threads {
            Task { [end] in Self.hold(begun, end) }
            DispatchQueue.global().async { [end] in Self.hold(begun, end) }
        }
        begun.wait()
    }

    func release() {
        for _ in 0..<(2 * Self.threads) { end.signal() }
    }

    private static func hold(_ begun: DispatchSemaphore, _ end: DispatchSemaphore) {
        begun.signal()
        end.wait()
    }
}

/// A callback loader that answers after 20 ms, from a queue of its own.
private struct PromptLoader: AccessTokenLoader {
    private let network = DispatchQueue(label: "network")

    func load(then handler: @escaping Handler) {
        network.asyncAfter(deadline: .now() + .milliseconds(20)) { handler(.success(.hour("a"))) }
    }
}

/// A callback loader that blocks the thread on which it is called.
private struct BlockingLoader: AccessTokenLoader {
    let goOn = DispatchSemaphore(value: 0)

    func load(then handler: @escaping Handler) {
        goOn.wait()
        handler(.success(.hour("a")))
    }
}

private final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "loads")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

private func ask(_ service: TokenService, callers: Int) -> [Task<String?, Never>] {
    (0..<callers).map { _ in Task { try? await service.retrieveToken().value } }
}

extension Result<AccessToken, any Error> {
    fileprivate var code: TokenServiceError.Code? {
        if case .failure(let error as TokenServiceError) = self { error.code } else { nil }
    }
}
