import AccessTokens
import AccessTokensDPoP
import AccessTokensHTTP
import Foundation
import Testing

/// The examples of the specifications, verbatim.
struct VectorTests {
    /// RFC 9449 §4.1, figure 2.
    static let tokenProof =
        "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldW"
        + "QVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybF"
        + "RjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0z"
        + "drj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"

    /// RFC 9449 §7.1, figure 13.
    static let resourceProof =
        "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldW"
        + "QVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQU"
        + "VCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZl"
        + "VIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dq"
        + "d-jfxSYoMxhAJpLjA"

    /// RFC 9449 §4.1, figure 1, in an order of members that a key service may use.
    static let key =
        #"{"crv":"P-256","kty":"EC","y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA","use":"sig","#
        + #""x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs"}"#

    /// Creates the proof of an example with the example's signature.
    func proof(_ expected: String, id: String, time: TimeInterval, method: String, url: String, token: String?) async throws
        -> String?
    {
        let signature = try #require(expected.split(separator: ".").last.flatMap { decoded(String($0)) })
        let key = try DPoPKey(
            PublicJWK(json: Data(Self.key.utf8)), algorithm: "ES256", wallClock: { Date(timeIntervalSince1970: time) },
            makeID: { id }, executor: nil
        ) { bytes in
            #expect(
                String(decoding: bytes, as: UTF8.self) == expected.prefix { $0 != "." } + "." + expected.split(separator: ".")[1])
            return signature
        }
        #expect(key.keyThumbprint == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
        return try await key.proof(method: method, url: #require(URL(string: url)), accessToken: token, nonce: nil).headers[
            "DPoP"]
    }

    @Test func `the proof of RFC 9449 §4 for a token request comes out byte for byte`() async throws {
        let proof = try await proof(
            Self.tokenProof, id: "-BwC3ESc6acc2lTc", time: 1_562_262_616, method: "POST",
            url: "https://server.example.com/token", token: nil)
        #expect(proof == Self.tokenProof)
    }

    @Test func `the proof of RFC 9449 §7 for a resource comes out byte for byte`() async throws {
        let proof = try await proof(
            Self.resourceProof, id: "e1j3V_bKic8-LAEB", time: 1_562_262_618, method: "GET",
            url: "https://resource.example.org/protectedresource", token: "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU")
        #expect(proof == Self.resourceProof)
    }

    // RFC 7638 §3.1.
    @Test func `the thumbprint of RFC 7638 comes out`() throws {
        let key = try PublicJWK(
            json: Data(
                (#"{"kty": "RSA","n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZ"#
                    + #"CiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5h"#
                    + #"ajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e": "AQAB","#
                    + #""alg": "RS256","kid": "2011-04-29"}"#).utf8))
        #expect(key.thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
    }

    private func decoded(_ text: String) -> Data? {
        Data(
            base64Encoded: text.replacing("-", with: "+").replacing("_", with: "/")
                + String(repeating: "=", count: (4 - text.count % 4) % 4))
    }
}
