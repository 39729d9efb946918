import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantees 7 and 8: a caller leaves alone, loads outlive callers")
struct CancellationTests {
    // Museum 3: cancelling the first caller fails the others (okta-mobile-swift; azure-sdk-for-net#19424).
    // Museum 4: cancelling any waiter cancels the shared load and poisons the cache (soto-core).
    @Test(arguments: 0..<4)
    func `a cancelled caller leaves at once, and alone`(index: Int) throws {
        let scene = Scene(isRepeatable: true, endsWhenCancelled: true)
        var waiting = scene.calls(4)
        let leaver = waiting.remove(at: index)
        leaver.cancel()
        scene.stage.run()
        #expect(leaver.isCancelledWithError)
        #expect(!waiting.contains { $0.isDone })
        let load = try scene.load()
        #expect(!load.isCancelled)
        scene.succeed(load, with: .hour("a"))
        #expect(waiting.allSatisfy { $0.value?.value == "a" })
    }

    @Test func `a caller cancelled before a miss starts nothing`() {
        let scene = Scene()
        let caller = scene.stage.startCancelled { [service = scene.service] in try await service.retrieveToken() }
        #expect(caller.isCancelledWithError)
        #expect(scene.loader.loadCount == 0)
    }

    @Test func `8: a load without callers goes on, and its token is kept`() throws {
        let scene = Scene()
        let waiting = scene.calls(3)
        waiting.forEach { $0.cancel() }
        scene.stage.run()
        #expect(waiting.allSatisfy { $0.isCancelledWithError })
        try scene.deliver(.hour("a"))
        #expect(scene.call().value?.value == "a")
        #expect(scene.loader.loadCount == 1)
    }

    @Test(arguments: [1, 5, 29])
    func `a caller's own limit ends only its own wait`(seconds: Int) throws {
        let scene = Scene()
        let patient = scene.call()
        let hasty = scene.call(within: .seconds(seconds))
        scene.advance(by: .seconds(seconds) - .milliseconds(1))
        #expect(!hasty.isDone)
        scene.advance(by: .milliseconds(1))
        #expect(hasty.code == .deadlineExceeded)
        #expect(!patient.isDone)
        try scene.deliver(.hour("a"))
        #expect(patient.value?.value == "a")
    }

    // Museum 15: the second caller's deadline disables the shared one (firebase PR#16665).
    @Test func `another caller's limit doesn't change the load's own limit`() throws {
        let scene = Scene()
        let first = scene.call()
        _ = scene.call(within: .seconds(3600))
        scene.advance(by: .seconds(30))
        #expect(first.code == .loadTimedOut)
    }

    @Test(arguments: [Duration.zero, .seconds(-1)])
    func `a caller with a limit of zero or less starts no load on a miss`(limit: Duration) {
        let scene = Scene()
        #expect(scene.call(within: limit).code == .deadlineExceeded)
        #expect(scene.loader.loadCount == 0)
    }

    @Test func `a few timers serve many callers with limits of their own, waiting or answered`() throws {
        let scene = Scene()
        _ = scene.call(within: .seconds(20))
        #expect(scene.clock.sleeperCount == 2, "the load's and the caller's")
        for seconds in 1...100 { _ = scene.call(within: .seconds(20 + seconds)) }
        #expect(scene.clock.sleeperCount == 2)
        for round in 1...100 {
            try scene.deliver(.hour("\(round)"))
            scene.invalidate(.hour("\(round)"))
            scene.advance(by: .seconds(31))
            #expect(scene.clock.sleeperCount == 0, "without a reason there is no timer")
            #expect(scene.call(within: .seconds(3_600)).isDone == false)
            #expect(scene.clock.sleeperCount == 1, "the load's, which ends before the caller's")
        }
    }

    @Test func `callers leave in the order of their limits, not of their calls`() throws {
        let scene = Scene()
        let limits = [7, 3, 9, 1, 5, 5, 2]
        let callers = limits.map { scene.call(within: .seconds($0)) }
        for second in 1...10 {
            scene.advance(by: .seconds(1))
            for (caller, limit) in zip(callers, limits) {
                #expect(caller.isDone == (limit <= second) && (limit > second || caller.code == .deadlineExceeded))
            }
        }
    }

    @Test func `a waiting caller gets its token after ten thousand others have come and left`() throws {
        let scene = Scene()
        let first = scene.call()
        for _ in 0..<100 {
            let crowd = scene.calls(100)
            crowd.forEach { $0.cancel() }
            scene.stage.run()
            #expect(crowd.allSatisfy { $0.isCancelledWithError })
        }
        try scene.deliver(.hour("a"))
        #expect(first.value?.value == "a")
    }
}
