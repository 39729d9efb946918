import AccessTokens
import AccessTokensTesting
import Foundation
import Testing

@Suite("Guarantee 19: observable")
struct EventTests {
    private func collect(_ events: AsyncStream<TokenEvent>, _ count: Int, in scene: Scene) -> [TokenEvent] {
        scene.stage.start {
            var seen: [TokenEvent] = []
            var iterator = events.makeAsyncIterator()
            while seen.count < count, let event = await iterator.next() { seen.append(event) }
            return seen
        }.value ?? []
    }

    @Test func `events tell a service's life in order, each with its generation and load`() throws {
        let scene = Scene()
        let events = scene.service.events()
        _ = scene.calls(3)
        scene.fail(try scene.load())
        _ = scene.calls(2)
        try scene.deliver(.hour("a"))
        scene.advance(by: .seconds(3000))
        _ = scene.call()
        scene.fail(try scene.load())
        scene.invalidate(.hour("a"))
        scene.reset()
        scene.replace(with: .hour("b"))
        let story = collect(events, 9, in: scene).map { "\($0.name) \($0.generation) \($0.load ?? 0) \($0.callers)" }
        #expect(
            story == [
                "loadStarted 0 1 1", "loadFailed 0 1 3", "loadStarted 0 2 1", "loadSucceeded 0 2 2", "refreshStarted 0 3 0",
                "refreshFailed 0 3 0", "invalidated 0 0 0", "reset 1 0 0", "replaced 2 0 0",
            ])
    }

    @Test func `an event's error names the same next attempt as the callers' error`() throws {
        let scene = Scene()
        let events = scene.service.events()
        let caller = scene.call()
        scene.fail(try scene.load(), with: ScriptedFailure(retryAfter: .seconds(7)))
        let error = collect(events, 2, in: scene).last?.error
        #expect(caller.retryAt == 7 && error?.retryAt?.timeIntervalSince1970 == 7)
    }

    @Test func `callers that wait on through a replacement are counted with the new load`() throws {
        let scene = Scene()
        let events = scene.service.events()
        _ = scene.calls(3)
        scene.perform { service in await service.joinCallbacks(callers: 5, seen: 0) { _ in } }
        scene.replace(with: AccessToken("expired", lifetime: .zero))
        #expect(collect(events, 3, in: scene).last?.callers == 8)
    }

    @Test func `19: a load that fails after an older one has succeeded sends an event and changes nothing`() throws {
        let scene = Scene(isRepeatable: true), events = scene.service.events()
        _ = scene.call()
        let late = try scene.load()
        scene.advance(by: .seconds(30))
        _ = scene.call()
        let load = try scene.load()
        scene.succeed(late, with: .hour("a"))
        scene.fail(load)
        #expect(scene.service.cachedToken?.value == "a")
        let story = scene.told(by: events).map { "\($0.name) \($0.load ?? 0)" }
        #expect(story == ["loadStarted 1", "loadFailed 1", "loadStarted 2", "loadSucceeded 1", "refreshFailed 2"])
    }

    @Test(arguments: ["a token", "an expired token", "a refusal"])
    func `19: a timed-out load that ends late sends one more event`(how: String) throws {
        let scene = Scene(), events = scene.service.events()
        _ = scene.call()
        let load = try scene.load()
        scene.advance(by: .seconds(30))
        switch how {
        case "a token": scene.succeed(load, with: .hour("a"))
        case "an expired token": scene.succeed(load, with: AccessToken("a", lifetime: .zero))
        default: scene.fail(load, with: ScriptedFailure.grantRefused)
        }
        let story = scene.told(by: events).map { "\($0.name) \($0.load ?? 0)" }
        #expect(story == ["loadStarted 1", "loadFailed 1", how == "a token" ? "loadSucceeded 1" : "loadFailed 1"])
    }

    @Test func `each subscriber has its own bounded buffer, and a slow one loses its oldest events`() throws {
        let scene = Scene()
        let slow = scene.service.events(bufferingNewest: 2), quick = scene.service.events()
        for number in 0..<10 { scene.replace(with: .hour("\(number)")) }
        #expect(collect(slow, 2, in: scene).map(\.generation) == [9, 10])
        #expect(collect(quick, 10, in: scene).map(\.generation) == Array(1...10))
    }

    @Test func `streams end when the service is released, and a stream that ended costs nothing`() {
        let stage = Stage()
        var service: TokenService? = TokenService(environment: .driven(by: stage, clock: ManualClock())) { _ in .hour("a") }
        let events = service?.events()
        _ = service?.events()
        service = nil
        let reader = stage.start {
            guard let events else { return -1 }
            return await events.reduce(0) { count, _ in count + 1 }
        }
        #expect(reader.value == 0)
    }

    @Test(arguments: [0, -1])
    func `a buffer has room for one event at least`(limit: Int) {
        let scene = Scene(), events = scene.service.events(bufferingNewest: limit)
        scene.reset()
        #expect(scene.told(by: events).map(\.name) == [.reset])
    }

    @Test func `a stream without a reader is released, with the events it still holds`() throws {
        final class Cause: Error {}
        let scene = Scene()
        weak let cause = try {
            let cause = Cause(), events = scene.service.events()
            _ = scene.call()
            scene.fail(try scene.load(), with: cause)
            withExtendedLifetime(events) {}
            return cause
        }()
        // This makes the back-off forget its last error.
        _ = scene.call()
        try scene.deliver(.hour("a"))
        #expect(cause == nil)
    }

    // Museum 27: handlers that run under the lock (GTMAppAuth; Alamofire PR#3322). Resuming a reader runs its executor.
    @Test func `a reader's executor may call the service while it receives an event`() {
        let scene = Scene(), told = Log<TokenEvent.Name>(), events = scene.service.events()
        let curious = CuriousExecutor(scene.stage) { [service = scene.service] in _ = service.events() }
        let reader = Task(executorPreference: curious) { for await event in events { told.append(event.name) } }
        scene.stage.run()
        scene.reset()
        reader.cancel()
        scene.stage.run()
        #expect(told.entries == [.reset])
    }

    /// Runs an action before each job that it passes on.
    private final class CuriousExecutor: TaskExecutor {
        private let stage: Stage
        private let question: @Sendable () -> Void

        init(_ stage: Stage, question: @escaping @Sendable () -> Void) {
            self.stage = stage
            self.question = question
        }

        func enqueue(_ job: consuming ExecutorJob) {
            question()
            stage.enqueue(job)
        }
    }
}
