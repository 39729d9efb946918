import AccessTokens
import Foundation
import Testing

@Suite struct AccessTokenTests {
    private static func token(
        _ value: String = "v", tokenType: String = "Bearer", lifetime: Duration? = .seconds(60),
        refreshIn: Duration? = .seconds(7), scope: String? = "a", refreshToken: String? = "r",
        expiration: Date? = .distantFuture
    ) -> AccessToken {
        AccessToken(
            value, tokenType: tokenType, lifetime: lifetime, refreshIn: refreshIn, scope: scope, refreshToken: refreshToken,
            refreshTokenExpiration: expiration)
    }

    @Test(arguments: [
        token("w"), token(tokenType: "DPoP"), token(lifetime: nil), token(refreshIn: .seconds(8)), token(refreshIn: nil),
        token(scope: "b"), token(refreshToken: nil), token(expiration: .distantPast), token(expiration: nil),
    ])
    func `tokens that differ in one field are different, and equal ones have one hash`(other: AccessToken) {
        #expect(other != Self.token())
        #expect(Self.token() == Self.token() && Self.token().hashValue == Self.token().hashValue)
    }
}
