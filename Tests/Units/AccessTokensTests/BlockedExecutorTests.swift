import AccessTokens
import AccessTokensTesting
import Dispatch
import Testing
import TokenServiceConcurrency

/// Real threads, but no real time; blocked threads are released at the end.
@Suite("Guarantee 9 on real threads: no limit waits for foreign code", .timeLimit(.minutes(10)))
struct BlockedExecutorTests {
    @Test func `a loader that blocks its executor's only thread holds up no limit, no caller and no fence`() async throws {
        let clock = ManualClock(), semaphore = Semaphore(), began = SingleResult<Void>()
        let service = TokenService(environment: .init(clock: clock, loadExecutor: QueueExecutor(isConcurrent: false))) { _ in
            began.complete(with: .success(()))
            semaphore.wait()
            return .hour("late")
        }
        let patient = Task { try await service.retrieveToken() }
        try await began.value()
        let hasty = Task { try await service.retrieveToken(within: .seconds(10)) }
        // The load's alarm and the caller's.
        try await clock.waitForSleepers(2)
        clock.advance(by: .seconds(10))
        #expect(await Self.code(of: hasty) == .deadlineExceeded)
        clock.advance(by: .seconds(20))
        #expect(await Self.code(of: patient) == .loadTimedOut)
        #expect(await service.reset().storeFailure == nil)
        await service.replace(with: .hour("given"))
        #expect(try await service.retrieveToken().value == "given")
        semaphore.signal()
    }

    @Test func `a store that blocks its executor's only thread holds up no fence for longer than 5 s`() async throws {
        let clock = ManualClock(), store = BlockingStore()
        let service = TokenService(
            store: store, environment: .init(clock: clock, loadExecutor: QueueExecutor(isConcurrent: false))
        ) { _ in .hour("loaded") }
        let caller = Task { try await service.retrieveToken() }
        try await store.began.value()
        let signOut = Task { await service.reset() }
        // The fence has taken effect once the waiting callers have their error.
        #expect(await Self.code(of: caller) == .reset)
        clock.advance(by: .seconds(5))
        #expect(await signOut.value.storeFailure?.code == .storeFailed)
        #expect(await service.replace(with: .hour("given")).storeFailure?.code == .storeFailed)
        #expect(try await service.retrieveToken().value == "given")
        for _ in 1...3 { store.semaphore.signal() }
    }

    @Test func `a loader whose cancellation handler blocks holds up no fence and no other caller's limit`() async throws {
        let clock = ManualClock(), semaphore = Semaphore(), handling = SingleResult<Void>(), began = SingleResult<Void>()
        let ends = [SingleResult<AccessToken>(), SingleResult()]
        let service = TokenService(environment: .driven(by: QueueExecutor(isConcurrent: true), clock: clock), isRepeatable: true)
        {
            previous in
            guard previous == nil else { return try await ends[1].value() }
            return try await withTaskCancellationHandler {
                began.complete(with: .success(()))
                return try await ends[0].value()
            } onCancel: {
                handling.complete(with: .success(()))
                semaphore.wait()
            }
        }
        let waiting = Task { try await service.retrieveToken() }
        try await began.value()
        await service.replace(with: AccessToken("grant", lifetime: .zero))
        try await handling.value()
        let hasty = Task { try await service.retrieveToken(within: .seconds(1)) }
        try await clock.waitForSleepers(2)
        clock.advance(by: .seconds(1))
        #expect(await Self.code(of: hasty) == .deadlineExceeded)
        _ = await service.reset()
        #expect(await Self.code(of: waiting) == .reset)
        await service.replace(with: .hour("given"))
        #expect(try await service.retrieveToken().value == "given")
        semaphore.signal()
        for end in ends { end.complete(with: .failure(CancellationError())) }
    }

    private static func code(of task: Task<AccessToken, any Error>) async -> TokenServiceError.Code? {
        do { _ = try await task.value } catch { return (error as? TokenServiceError)?.code }
        return nil
    }

    /// A semaphore that blocks in a synchronous function, as in a careless loader.
    private struct Semaphore: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        func wait() { semaphore.wait() }
        func signal() { semaphore.signal() }
    }

    /// Blocks in its first operation.
    private struct BlockingStore: TokenStore {
        let semaphore = Semaphore(), began = SingleResult<Void>()

        @concurrent func load() async -> StoredToken? {
            began.complete(with: .success(()))
            semaphore.wait()
            return nil
        }

        @concurrent func save(_ token: StoredToken) async {}
        @concurrent func remove() async {}
    }

    private final class QueueExecutor: TaskExecutor {
        private let queue: DispatchQueue

        init(isConcurrent: Bool) {
            queue = DispatchQueue(label: "load", attributes: isConcurrent ? .concurrent : [])
        }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }
}
