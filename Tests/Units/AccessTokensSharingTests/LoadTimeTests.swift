import AccessTokensTesting
import Foundation
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("A loader that checks its time") struct LoadTimeTests {
    private let stage = Stage(), clock = ManualClock(), sent = Log<Int>(), store = InMemorySharedTokenStore()

    private var record: GrantRecord? { store.contents.flatMap { try? GrantRecordFormat.decode($0.bytes) } }

    @Test(arguments: [(29, nil, true), (30, nil, false), (13, 30, true), (14, 30, false), (4, 10, true), (5, 10, false)])
    func `26: a loader that checks its time right before it sends presents no token too late`(
        pause: Int, grace: Int?, isSent: Bool
    ) {
        let environment = TokenService.Environment.driven(
            by: stage, clock: clock, wallClock: { Date(timeIntervalSinceReferenceDate: 0) }, seed: 1)
        let sharing = TokenSharing(serverGrace: grace.map { .seconds($0) })
        let service = TokenService(sharedStore: store, sharing: sharing, environment: environment) { [clock, sent] _ in
            // The process is stopped while the loader connects.
            clock.advance(by: .seconds(pause))
            try LoadTime.check()
            sent.append(pause)
            return .granted("first")
        }
        stage.start { await service.replace(with: AccessToken("", lifetime: .zero, refreshToken: "grant")) }
        stage.run()
        let caller = stage.start { try await service.retrieveToken() }
        stage.run()
        #expect(sent.entries.isEmpty != isSent)
        #expect((caller.value?.value == "first") == isSent)
        #expect(record?.mark == nil && record?.trouble == nil, "nothing was sent, so no service waits")
    }

    @Test func `outside a load the time check passes`() throws {
        try LoadTime.check()
    }
}
