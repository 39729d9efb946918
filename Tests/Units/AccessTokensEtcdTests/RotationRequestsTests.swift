import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

/// The requests that etcd gets for a rotation.
@Suite struct `A rotation's requests` {
    let stage = Stage()
    let clock = ManualClock()
    let etcd = FakeEtcd()

    private func services(_ loaders: [ScriptedLoader]) throws -> [TokenService] {
        let start = clock.now
        return try loaders.enumerated().map { number, loader in
            let environment = TokenService.Environment.driven(
                by: stage, clock: clock,
                wallClock: { [clock] in Date(timeIntervalSinceReferenceDate: start.duration(to: clock.now) / .seconds(1)) },
                seed: UInt64(number))
            return TokenService(
                sharedStore: try EtcdTokenStore(etcd, environment: environment), environment: environment, loader: loader)
        }
    }

    private var requests: Int { etcd.state.withLock { $0.requests } }

    @Test(arguments: [1, 2, 4])
    func `are two for the service that loads, and two for each that waits meanwhile`(count: Int) throws {
        let loaders = (0..<count).map { _ in ScriptedLoader() }
        let services = try services(loaders)
        for rotation in 0...3 {
            let before = requests
            let calls = services.map { service in stage.start { try await service.retrieveToken() } }
            let load = stage.start { [loader = loaders[0]] in try await loader.nextCall() }
            let token = AccessToken("\(rotation)", lifetime: .seconds(3600), refreshToken: "r\(rotation)")
            try #require(load.value).succeed(with: token)
            stage.run()
            clock.advance(by: .milliseconds(50))
            stage.run()
            for call in calls { #expect(call.value?.value == "\(rotation)") }
            // In the first rotation each service also reads the record.
            if rotation > 0 { #expect(requests - before == 2 * count) }
            clock.advance(by: .seconds(3600))
            stage.run()
        }
    }

    @Test(arguments: [60, 600, 3600])
    func `are about five for four busy services, most of which find the new token there`(lifetime: Int) throws {
        let loader = ScriptedLoader()
        let services = try services(Array(repeating: loader, count: 4))
        var rotations = 0, before = 0
        while rotations < 40 {
            for service in services { stage.start { _ = try await service.retrieveToken() } }
            while loader.loadCount > rotations {
                rotations += 1
                // In the first rotation each service also reads the record.
                if rotations == 2 { before = requests }
                let load = stage.start { try await loader.nextCall() }
                clock.advance(by: .milliseconds(300))
                stage.run()
                try #require(load.value).succeed(
                    with: AccessToken("\(rotations)", lifetime: .seconds(lifetime), refreshToken: "r\(rotations)"))
            }
            clock.advance(by: .seconds(lifetime) / 600)
            stage.run()
        }
        // Two for the service that loads, and one for each of the others: the fewest without a connection that stays open.
        let mean = Double(requests - before) / Double(rotations - 1)
        #expect((5...5.2).contains(mean), "\(mean)")
    }
}
