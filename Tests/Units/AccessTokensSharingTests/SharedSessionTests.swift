import AccessTokensTesting
import Testing

@testable import AccessTokens
@testable import AccessTokensSharing

@Suite("What a service that shares its grant remembers")
struct SharedSessionTests {
    private func knowledge(_ revision: String, first: Int, last: Int) -> SharedFlight.Knowledge {
        var knowledge = SharedFlight.Knowledge()
        knowledge.sight = .init(revision: .init(revision), first: .seconds(first), last: .seconds(last), since: .seconds(first))
        return knowledge
    }

    @Test func `a flight that ends late doesn't change when a later record was first seen`() {
        let clock = ServiceClock.opened(ManualClock())
        let session = SharedSession(InMemorySharedTokenStore(), TokenSharing(), clock: clock, environment: .init())
        var sight: SharedFlight.Knowledge.Sight? { session.begin(isCheck: true).knowledge.sight }
        session.learn(knowledge("2", first: 100, last: 100), since: 0)
        session.learn(knowledge("1", first: 10, last: 10), since: 0)
        #expect(sight?.revision == .init("2") && sight?.since == .seconds(100))
        // Another flight has seen the same record later.
        session.learn(knowledge("2", first: 110, last: 110), since: 0)
        #expect(sight?.first == .seconds(100) && sight?.since == .seconds(100))
        session.learn(knowledge("3", first: 120, last: 120), since: 0)
        #expect(sight?.revision == .init("3"))
    }
}
