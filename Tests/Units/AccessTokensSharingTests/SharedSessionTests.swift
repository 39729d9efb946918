import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("What a service that shares its grant remembers")
struct SharedSessionTests {
    private func knowledge(_ revision: String, since: Duration) -> SharedFlight.Knowledge {
        var knowledge = SharedFlight.Knowledge()
        (knowledge.revision, knowledge.since) = (.init(revision), since)
        return knowledge
    }

    @Test func `a flight that ends late doesn't take the moment back at which a later record was first seen`() {
        let clock = ServiceClock.opened(ManualClock())
        let session = SharedSession(InMemorySharedTokenStore(), TokenSharing(), clock: clock, environment: .init())
        session.learn(knowledge("2", since: .seconds(100)), since: 0)
        session.learn(knowledge("1", since: .seconds(10)), since: 0)
        #expect(session.begin(isLook: true).knowledge.revision == .init("2"))
        #expect(session.begin(isLook: true).knowledge.since == .seconds(100))
        // A store that reports a record's age may date the same record earlier.
        session.learn(knowledge("2", since: .seconds(90)), since: 0)
        #expect(session.begin(isLook: true).knowledge.since == .seconds(90))
        session.learn(knowledge("3", since: .seconds(120)), since: 0)
        #expect(session.begin(isLook: true).knowledge.revision == .init("3"))
    }
}
