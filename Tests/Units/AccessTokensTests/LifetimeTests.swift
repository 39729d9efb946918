import AccessTokensTesting
import Testing

@testable import AccessTokens

@Suite("Lifetimes: nothing leaks, nothing is left running")
struct LifetimeTests {
    @Test func `a service released mid-load lives until the load ends, and answers its callers`() throws {
        let stage = Stage(), loader = ScriptedLoader(), clock = ManualClock()
        var service: TokenService? = TokenService(environment: .driven(by: stage, clock: clock), loader: loader)
        weak let watched = service
        let caller = stage.start { [service] in try await service?.retrieveToken() }
        service = nil
        #expect(watched != nil)
        let call = stage.start { try await loader.nextCall() }
        call.value?.succeed(with: .hour("a"))
        stage.run()
        #expect(caller.value??.value == "a")
        #expect(watched == nil)
        #expect(clock.sleeperCount == 0)
    }

    // Museum 19, with no caller left to notice: the load outlives its limit, and the service outlives its last owner.
    @Test func `a rotated refresh token that comes late is saved, even if no owner of the service is left`() throws {
        let stage = Stage(), loader = ScriptedLoader(), clock = ManualClock(), store = ScriptedStore()
        var service: TokenService? = TokenService(store: store, environment: .driven(by: stage, clock: clock), loader: loader)
        weak let watched = service
        let caller = stage.start { [service] in try await service?.retrieveToken() }
        service = nil
        clock.advance(by: .seconds(30))
        stage.run()
        #expect(caller.code == .loadTimedOut)
        let call = stage.start { try await loader.nextCall() }
        call.value?.succeed(with: AccessToken("late", lifetime: .seconds(3_600), refreshToken: "rotated"))
        stage.run()
        #expect(store.contents?.refreshToken == "rotated")
        #expect(watched == nil)
    }

    @Test(arguments: [true, false])
    func `a released service that holds a token or an error is deallocated`(isHolding: Bool) throws {
        weak let watched = try {
            let scene = Scene()
            _ = scene.call()
            if isHolding { try scene.deliver(.hour("a")) } else { scene.fail(try scene.load()) }
            return scene.service
        }()
        #expect(watched == nil)
    }

    @Test func `after reset and release nothing is left running`() throws {
        let scene = Scene(isRepeatable: true, endsWhenCancelled: true)
        weak let watched = scene.service
        let waiting = scene.call(within: .seconds(100))
        scene.reset()
        #expect(waiting.code == .reset)
        #expect(scene.clock.sleeperCount == 0)
        #expect(scene.loader.unansweredCount == 0)
        #expect(watched != nil)
    }

    @Test func `a cancelled caller leaves nothing behind`() throws {
        let stage = Stage(), loader = ScriptedLoader(isRepeatable: true, endsWhenCancelled: true), clock = ManualClock()
        weak let watched = {
            let service = TokenService(environment: .driven(by: stage, clock: clock), loader: loader)
            let caller = stage.start { try await service.retrieveToken(within: .seconds(5)) }
            caller.cancel()
            stage.run()
            #expect(caller.isCancelledWithError)
            return service
        }()
        #expect(watched != nil, "the load outlives its caller")
        clock.advance(by: .seconds(30))
        stage.run()
        #expect(watched == nil, "and ends with its limit")
        #expect(clock.sleeperCount == 0)
    }

    @Test func `a caller's limit that is longer than its wait doesn't keep the service alive`() throws {
        let stage = Stage(), callers = Stage(), clock = ManualClock()
        weak let watched = {
            let service = TokenService(environment: .driven(by: stage, clock: clock)) { _ in .hour("a") }
            let caller = callers.start { try await service.retrieveToken(within: .seconds(100)) }
            // The load ends before the caller has returned to set its alarm.
            stage.run()
            callers.run()
            #expect(caller.value?.value == "a")
            return service
        }()
        #expect(watched == nil)
    }

    @Test(arguments: [true, false])
    func `a load that has ended leaves nothing in the service`(succeeds: Bool) throws {
        let scene = Scene()
        _ = scene.call()
        let load = try scene.load()
        if succeeds { scene.succeed(load, with: .hour("a")) } else { scene.fail(load) }
        let left = scene.stage.start { [service = scene.service] in
            let memberships = await [service.flightMembership, service.operationMembership]
            return await (service.load == nil ? 0 : 1) + memberships.compactMap(\.self).count
        }
        #expect(left.value == 0)
    }
}
