import AccessTokens
import AccessTokensTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct ScriptedLoaderTests {
    let stage = Stage()

    @Test func `each load becomes a call, in order, with the token to replace`() async throws {
        let loader = ScriptedLoader()
        let old = AccessToken("old", refreshToken: "grant")
        let first = stage.start { try await loader.loadToken(replacing: nil) }
        let second = stage.start { try await loader.loadToken(replacing: old) }
        #expect(loader.loadCount == 2)
        #expect(loader.unansweredCount == 2)

        let calls = [try await loader.nextCall(), try await loader.nextCall()]
        #expect(calls.map(\.previous) == [nil, old])
        calls[1].succeed(with: AccessToken("second"))
        stage.run()
        #expect(!first.isDone)
        #expect(second.value == AccessToken("second"))
        #expect(loader.unansweredCount == 1)
        #expect(loader.loadCount == 2)
    }

    @Test func `an async load ends with the error that the test gives`() async throws {
        let loader = ScriptedLoader()
        let load = stage.start { try await loader.loadToken(replacing: nil) }
        try await loader.nextCall().fail(with: ScriptedFailure.grantRefused)
        stage.run()
        #expect(load.error as? ScriptedFailure == .grantRefused)
        #expect(loader.unansweredCount == 0)
    }

    @Test func `an async load ignores every answer but the first`() async throws {
        let loader = ScriptedLoader()
        let load = stage.start { try await loader.loadToken(replacing: nil) }
        let call = try await loader.nextCall()
        call.succeed(with: AccessToken("first"))
        call.succeed(with: AccessToken("second"))
        call.fail(with: ScriptedFailure.transient)
        stage.run()
        #expect(load.value == AccessToken("first"))
    }

    @Test func `the first task that waits for a call gets the first load`() async {
        let loader = ScriptedLoader()
        let tests = (0..<3).map { _ in stage.start { try await loader.nextCall() } }
        for index in 0..<3 {
            #expect(tests.map(\.isDone) == (0..<3).map { $0 < index })
            _ = stage.start { try await loader.loadToken(replacing: AccessToken("\(index)")) }
        }
        #expect(tests.map { $0.value?.previous?.value } == ["0", "1", "2"])
    }

    @Test func `a cancelled wait for a call ends at once and loses no call`() {
        let loader = ScriptedLoader()
        let waiting = stage.start { try await loader.nextCall() }
        let next = stage.start { try await loader.nextCall() }
        waiting.cancel()
        stage.run()
        #expect(waiting.isCancelledWithError)

        _ = stage.start { try await loader.loadToken(replacing: AccessToken("old")) }
        #expect(next.value?.previous == AccessToken("old"))

        _ = stage.start { try await loader.loadToken(replacing: AccessToken("newer")) }
        let late = stage.startCancelled { try await loader.nextCall() }
        #expect(late.isCancelledWithError)
        let last = stage.start { try await loader.nextCall() }
        #expect(last.value?.previous == AccessToken("newer"))
    }

    @Test func `a cancelled load goes on until the test ends it, and the test can see that`() async throws {
        let loader = ScriptedLoader()
        let load = stage.start { try await loader.loadToken(replacing: nil) }
        let call = try await loader.nextCall()
        let watcher = stage.start { try await call.cancelled() }
        #expect(!call.isCancelled)
        #expect(!watcher.isDone)

        load.cancel()
        stage.run()
        #expect(call.isCancelled)
        #expect(watcher.value != nil)
        let late = stage.start { try await call.cancelled() }
        #expect(late.value != nil)
        #expect(!load.isDone)

        call.succeed(with: AccessToken("late"))
        stage.run()
        #expect(load.value == AccessToken("late"))
    }

    @Test func `waiting for a load's cancellation ends when the waiting task is cancelled`() async throws {
        let loader = ScriptedLoader()
        _ = stage.start { try await loader.loadToken(replacing: nil) }
        let call = try await loader.nextCall()
        let watcher = stage.start { try await call.cancelled() }
        watcher.cancel()
        stage.run()
        #expect(watcher.isCancelledWithError)
        #expect(!call.isCancelled)
    }

    @Test(arguments: [true, false])
    func `a cancelled load ends at once if the loader is made so`(_ isCancelledBefore: Bool) async throws {
        let loader = ScriptedLoader(endsWhenCancelled: true)
        let body: @Sendable () async throws -> AccessToken = { try await loader.loadToken(replacing: nil) }
        let load = isCancelledBefore ? stage.startCancelled(body) : stage.start(body)
        load.cancel()
        stage.run()
        #expect(load.isCancelledWithError)
        #expect(loader.unansweredCount == 0)
        let call = try await loader.nextCall()
        #expect(call.isCancelled)
        call.succeed(with: AccessToken("too late"))
    }

    @Test func `a call knows its load's priority, also when that is raised`() async throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let loader = ScriptedLoader()
        let load = Task(executorPreference: stage, priority: .low) { try await loader.loadToken(replacing: nil) }
        stage.run()
        let call = try await loader.nextCall()
        #expect(call.priority == .low)
        load.escalatePriority(to: .high)
        #expect(call.priority == .high)
        call.succeed(with: AccessToken("first"))
        stage.run()
        _ = try await load.value
    }

    @Test(arguments: [true, false]) func `a scripted loader is repeatable if the test says so`(_ isRepeatable: Bool) {
        #expect(ScriptedLoader(isRepeatable: isRepeatable).isRepeatable == isRepeatable)
    }

    @Test func `a thousand loads on real threads, some cancelled, get one answer each`() async throws {
        let loader = ScriptedLoader(endsWhenCancelled: true)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<1000 {
                let isCancelled = number.isMultiple(of: 10)
                let load = Task { try await loader.loadToken(replacing: AccessToken("\(number)")) }
                if isCancelled { group.addTask { load.cancel() } }
                group.addTask {
                    let call = try await loader.nextCall()
                    call.succeed(with: AccessToken(call.previous?.value ?? ""))
                }
                group.addTask {
                    let token = try? await load.value
                    #expect(token?.value == "\(number)" || (token == nil && isCancelled))
                }
            }
            try await group.waitForAll()
        }
        #expect(loader.loadCount == 1000)
        #expect(loader.unansweredCount == 0)
    }
}
