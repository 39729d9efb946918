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
        let environment = TokenService.Environment.driven(
            by: stage, clock: clock,
            wallClock: { [clock] in Date(timeIntervalSinceReferenceDate: start.duration(to: clock.now) / .seconds(1)) }, seed: 1)
        return try loaders.map { loader in
            TokenService(
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
            // The first time each reads what there is.
            if rotation > 0 { #expect(requests - before == 2 * count) }
            clock.advance(by: .seconds(3600))
            stage.run()
        }
    }
}
