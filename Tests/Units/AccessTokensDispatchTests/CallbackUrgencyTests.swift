import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Testing

@Suite("Guarantee 15: no urgent call waits behind a background one")
struct CallbackUrgencyTests {
    private let scene = ShimScene(), callers = Stage()

    private func call(_ name: String, as priority: TaskPriority) {
        _ = callers.start(priority: priority) { [scene] in scene.call(name) }
    }

    /// The shim's tasks that wait for a thread.
    private var carriers: [TaskPriority] { scene.stage.priorities }

    /// Runs the urgent jobs, like a pool that has no time for background tasks.
    private func runUrgent() {
        while carriers.contains(where: { $0 > .background }) { scene.stage.runMostUrgent() }
    }

    @Test func `only a call more urgent than those on their way to the actor gets a carrier task of its own`() {
        let calls: [(as: TaskPriority, carriers: [TaskPriority])] = [
            (.background, [.background]), (.background, [.background]), (.medium, [.background, .medium]),
            (.low, [.background, .medium]), (.high, [.background, .medium, .high]), (.medium, [.background, .medium, .high]),
        ]
        for (priority, expected) in calls {
            call("", as: priority)
            #expect(carriers == expected)
        }
    }

    @Test(arguments: [TaskPriority.low, .high])
    func `a carrier task that has arrived is forgotten, with its urgency`(priority: TaskPriority) {
        for _ in 1...2 {
            call("", as: .medium)
            scene.stage.run()
            call("", as: priority)
            #expect(carriers == [priority])
            scene.stage.run()
        }
    }

    @Test func `the urgent carrier takes along all calls in order and sets the load's urgency; later carriers find none`() throws
    {
        call("1", as: .background)
        _ = callers.start(priority: .background) { [scene] in scene.shim.invalidate(.hour("other")) { scene.log.append("2") } }
        call("3", as: .high)
        runUrgent()
        let next = callers.start { [loader = scene.loader] in try await loader.nextCall() }
        let load = try #require(next.value)
        #expect(load.priority == .high)
        // The background carrier has not run yet.
        #expect(carriers == [.background])
        load.succeed(with: .hour("a"))
        runUrgent()
        scene.queue.run()
        #expect(scene.log.entries == ["1 a", "2", "3 a"])
        scene.run()
        #expect(scene.log.entries.count == 3 && scene.loader.loadCount == 1)
    }

    @Test func `an urgent operation does not wait behind a background call either`() {
        call("1", as: .background)
        _ = callers.start(priority: .high) { [scene] in scene.shim.reset { _ in scene.log.append("signed out") } }
        runUrgent()
        scene.queue.run()
        #expect(scene.log.entries == ["1 reset", "signed out"])
    }

    @Test func `at most one background carrier waits for a thread, even if it never gets one`() {
        for _ in 1...100 {
            call("", as: .background)
            call("", as: .high)
            // The urgent carrier, not what it starts.
            scene.stage.runMostUrgent()
        }
        #expect(carriers.filter { $0 == .background }.count == 1)
    }
}
