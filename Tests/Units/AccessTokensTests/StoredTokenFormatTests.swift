import AccessTokens
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("A stored token as bytes")
struct StoredTokenFormatTests {
    private static let token = AccessToken(
        "value", tokenType: "Bearer", lifetime: .seconds(3_600) + .nanoseconds(1), refreshIn: .seconds(7), scope: "a b",
        refreshToken: "grant", refreshTokenExpiration: Date(timeIntervalSinceReferenceDate: 0.3))

    @Test(arguments: [
        StoredToken(token, received: Date(timeIntervalSinceReferenceDate: 0.1)),
        StoredToken(AccessToken("", refreshTokenExpiration: .distantPast), received: .distantPast),
        StoredToken(AccessToken(""), received: .distantPast),
        StoredToken(AccessToken("é\u{0}\"\\", lifetime: .seconds(-1), refreshToken: ""), received: .distantFuture),
    ])
    func `a token that was written is read again, to the last digit`(stored: StoredToken) throws {
        #expect(try StoredToken(serialized: stored.serialized()) == stored)
    }

    @Test func `bytes from before refresh tokens had an expiration are read, and a token without one still has those bytes`()
        throws
    {
        let old =
            #"{"format":"tokenservice.token","received":0,"token":{"refreshToken":"r","tokenType":"Bearer","value":"v"},"#
            + #""version":1}"#
        let stored = try StoredToken(serialized: Data(old.utf8))
        #expect(stored.token == AccessToken("v", refreshToken: "r"))
        #expect(try String(decoding: stored.serialized(), as: UTF8.self) == old)
    }

    @Test func `no prefix of the bytes is accepted as the whole`() throws {
        let data = try StoredToken(Self.token, received: .distantPast).serialized()
        for count in 0..<data.count {
            #expect(throws: StoredTokenFormatError.self) { try StoredToken(serialized: data.prefix(count)) }
        }
        // A slice whose indices don't begin at zero must work like any other data.
        let slice = (Data([1, 2, 3]) + data).dropFirst(3)
        #expect(try StoredToken(serialized: slice).token == Self.token)
    }

    @Test(arguments: [
        ("", "damaged"), ("{}", "not written by"), (#"{"format":"tokenservice.token","received":1,"#, "damaged"),
        (#"{"format":"tokenservice.token","version":2}"#, "version 2"),
        (#"{"format":"tokenservice.token","received":"secret","version":1}"#, "damaged"),
    ])
    func `bytes of another kind cause an error that quotes none of them`(text: String, part: String) {
        let error = #expect(throws: StoredTokenFormatError.self) { try StoredToken(serialized: Data(text.utf8)) }
        #expect(error?.description.contains(part) == true && error?.description.contains("secret") == false)
        #expect(error?.localizedDescription == error?.description)
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity])
    func `a date that is not a number can't be stored`(seconds: Double) {
        let stored = StoredToken(Self.token, received: Date(timeIntervalSinceReferenceDate: seconds))
        let error = #expect(throws: StoredTokenFormatError.self) { try stored.serialized() }
        #expect(error?.description.contains("date") == true)
    }
}
