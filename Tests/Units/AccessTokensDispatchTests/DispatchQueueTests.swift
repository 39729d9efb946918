import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Dispatch
import Testing
import TokenServiceConcurrency

@Suite("Guarantee 13 on real queues")
struct DispatchQueueTests {
    private let loader = AccessTokenLoaderMock(token: .hour("abc"))

    /// A service that has a token.
    ///
    /// It needs no load, since a test that blocks a thread of the pool might wait for the load forever.
    private func warmService(on queue: DispatchQueue) async -> AccessTokenService {
        let tokens = TokenService(environment: .init(clock: ManualClock()), loader: loader.tokenLoader)
        await tokens.replace(with: loader.token)
        return AccessTokenService(service: tokens, queue: queue)
    }

    @Test func `code written for the articles' API compiles and works`() async {
        #expect(makeServices().count == 4)
        // On a loaded machine the mock's queue may be late; with this clock no load times out.
        let service = AccessTokenService(loader: loader, environment: .init(clock: ManualClock()))
        let answer = await withCheckedContinuation { continuation in
            ProfileScreen(tokenService: service).loadProfile { continuation.resume(returning: $0) }
        }
        #expect(answer == "profile loaded")
    }

    @Test(arguments: [1, 100, 10_000])
    func `queue.sync {} waits for the hits called before it`(calls: Int) async {
        let queue = DispatchQueue(label: "test")
        let service = await warmService(on: queue)
        let log = Log<Int>()
        for number in 0..<calls { service.retrieveToken { _ in log.append(number) } }
        queue.sync {}
        #expect(log.entries == Array(0..<calls))
    }

    // As many as a delivery takes along, and more.
    @Test(arguments: [1, 64, 65, 1_000])
    func `queue.sync {} waits for hits called while an earlier handler runs`(calls: Int) async {
        let queue = DispatchQueue(label: "test")
        let service = await warmService(on: queue)
        let log = Log<Int>()
        let running = DispatchSemaphore(value: 0), goOn = DispatchSemaphore(value: 0)
        service.retrieveToken { _ in
            running.signal()
            goOn.wait()
            log.append(0)
        }
        running.wait()
        for number in 1...calls { service.retrieveToken { _ in log.append(number) } }
        goOn.signal()
        queue.sync {}
        #expect(log.entries == Array(0...calls))
    }

    @Test func `handlers run on the injected queue`() async {
        let key = DispatchSpecificKey<String>()
        let queue = DispatchQueue(label: "test")
        queue.setSpecific(key: key, value: "here")
        let service = AccessTokenService(loader: loader, queue: queue)
        for _ in 0..<2 {
            let place = await withCheckedContinuation { continuation in
                service.retrieveToken { _ in continuation.resume(returning: DispatchQueue.getSpecific(key: key)) }
            }
            #expect(place == "here")
        }
    }

    @Test func `on a concurrent queue handlers still come one after the other, in the order of the calls`() async {
        let queue = DispatchQueue(label: "test", attributes: .concurrent)
        let service = await warmService(on: queue)
        // Counts how many handlers run at once: never more than one.
        let running = Lock((now: 0, most: 0))
        let log = Log<Int>()
        await withCheckedContinuation { continuation in
            for number in 0..<5_000 {
                service.retrieveToken { _ in
                    running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                    log.append(number)
                    running.withLock { $0.now -= 1 }
                    if number == 4_999 { continuation.resume() }
                }
            }
        }
        #expect(log.entries == Array(0..<5_000))
        #expect(running.withLock { $0.most } == 1)
    }

    @Test(.tags(.threads))
    func `each handler is called once under concurrent calls, in the order of its own thread`() async {
        let service = AccessTokenService(loader: loader)
        let threads = 8, calls = 500
        let log = Log<(thread: Int, call: Int)>()
        await withCheckedContinuation { continuation in
            let left = Lock(threads * calls)
            DispatchQueue.global().async {
                DispatchQueue.concurrentPerform(iterations: threads) { thread in
                    for call in 0..<calls {
                        if call % 50 == 49 { service.invalidate(.hour("abc")) }
                        service.retrieveToken { _ in
                            log.append((thread, call))
                            let isLast = left.withLock { left in
                                left -= 1
                                return left == 0
                            }
                            if isLast { continuation.resume() }
                        }
                    }
                }
            }
        }
        for thread in 0..<threads {
            #expect(log.entries.filter { $0.thread == thread }.map(\.call) == Array(0..<calls))
        }
    }
}

extension Tag {
    /// Tests with real threads, for Thread Sanitizer.
    @Tag static var threads: Self
}
