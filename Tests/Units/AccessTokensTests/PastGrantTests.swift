import AccessTokensTesting
import Testing

@testable import AccessTokens

@Suite("Guarantee 6: a grant that is given up is handed over once")
struct PastGrantTests {
    @Test func `a grant that was signed in with again is handed over again`() {
        let scene = Scene(store: InMemoryTokenStore())
        for name in ["a", "b", "a"] { scene.replace(with: .granted(name)) }
        scene.reset()
        #expect(scene.discards == ["a replaced", "b replaced", "a signedOut"])
    }

    @Test func `a used-up grant isn't handed over, nor is one of the last 24 a second time`() {
        var grant = Grant(hasStore: true)
        for number in 0...24 { _ = grant.put(.granted("\(number)"), .replaced) }
        #expect((0..<24).allSatisfy { grant.giveUp(.granted("\($0)"), .signedOut) == nil })
        _ = grant.keep(.granted("new"), using: .granted("24"), bringsToken: true, beside: [])
        #expect((1...24).allSatisfy { grant.giveUp(.granted("\($0)"), .signedOut) == nil })
        #expect(grant.giveUp(.granted("0"), .signedOut) != nil, "only the last ones are remembered")
    }

    @Test func `a grant that a load brings again is handed over again, since the server has just issued it`() {
        var grant = Grant(hasStore: true)
        _ = grant.put(.granted("a"), .replaced)
        #expect(grant.put(nil, .signedOut) != nil && grant.giveUp(.granted("a"), .signedOut) == nil)
        #expect(grant.turnAway(.granted("a"), .signedOut) != nil && grant.giveUp(.granted("a"), .signedOut) == nil)
    }

    @Test func `a stored grant is compared by its refresh token, or without one by its access token`() {
        var grant = Grant(hasStore: true)
        _ = grant.giveUp(AccessToken("a", refreshToken: "r"), .signedOut)
        _ = grant.giveUp(AccessToken("b"), .signedOut)
        #expect(grant.giveUp(AccessToken("c", refreshToken: "r"), .signedOut) == nil)
        #expect(grant.giveUp(AccessToken("b"), .signedOut) == nil)
        #expect(grant.giveUp(AccessToken("a"), .signedOut) != nil)
        #expect(grant.giveUp(AccessToken("b", refreshToken: "b2"), .signedOut) != nil)
    }
}
