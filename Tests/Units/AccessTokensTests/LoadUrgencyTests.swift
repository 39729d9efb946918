import AccessTokensTesting
import Testing

@testable import AccessTokens

@Suite("Guarantee 15: a load is as urgent as those who wait for it, whatever comes between")
struct LoadUrgencyTests {
    @Test func `a caller that becomes urgent on its way to the actor starts an urgent load`() throws {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
        let scene = Scene()
        let caller = Task(executorPreference: scene.stage, priority: .background) { [service = scene.service] in
            try await service.retrieveToken()
        }
        scene.stage.runOnce()
        caller.escalatePriority(to: .high)
        scene.stage.run()
        #expect(try scene.load().priority == .high)
    }

    @Test func `a load whose last caller leaves just before it starts is as urgent as those who may join it`() throws {
        let store = ScriptedStore(), scene = Scene(store: store), eavesdropper = Eavesdropper(scene.stage)
        let events = scene.service.events()
        let reader = Task(executorPreference: eavesdropper) { for await _ in events {} }
        store.hold()
        let first = scene.stage.start(priority: .high) { [service = scene.service] in try await service.retrieveToken() }
        // That the load starts is told first. Thread B hears of it and cancels the caller while the actor is about to start it.
        eavesdropper.listen { first.cancel() }
        scene.release(store)
        eavesdropper.listen {}
        #expect(first.isDone)
        _ = scene.stage.start(priority: .high) { [service = scene.service] in try await service.retrieveToken() }
        #expect(try scene.load().priority == .high, "the second caller joined without coming in")
        reader.cancel()
        scene.stage.run()
    }
}
