import AccessTokensHTTP
import Testing

struct AuthenticationChallengeTests {
    typealias Challenge = AuthenticationChallenge

    static let invalidToken = Challenge(scheme: "Bearer", parameters: ["realm": "x", "error": "invalid_token"])

    // RFC 9110 §11.6.1 (its own example), §11.2, §11.3, §5.6.1 (empty elements), §5.6.4 (quoted strings); RFC 6750 §3.
    @Test(arguments: [
        (#"Bearer realm="x", error="invalid_token""#, [invalidToken]),
        (#"bearer REALM="x",Error=invalid_token"#, [Challenge(scheme: "bearer", parameters: invalidToken.parameters)]),
        (
            #"Basic realm="simple", Newauth realm="apps", type=1, title="Login to \"apps\"""#,
            [
                Challenge(scheme: "Basic", parameters: ["realm": "simple"]),
                Challenge(scheme: "Newauth", parameters: ["realm": "apps", "type": "1", "title": #"Login to "apps""#]),
            ]
        ),
        ("Negotiate, Bearer", [Challenge(scheme: "Negotiate"), Challenge(scheme: "Bearer")]),
        (
            "Negotiate a-._~+/==, Bearer x=y",
            [Challenge(scheme: "Negotiate", token68: "a-._~+/=="), Challenge(scheme: "Bearer", parameters: ["x": "y"])]
        ),
        (
            "Negotiate abc= , NTLM abc",
            [Challenge(scheme: "Negotiate", token68: "abc="), Challenge(scheme: "NTLM", token68: "abc")]
        ),
        ("Bearer", [Challenge(scheme: "Bearer")]), (" \t, ,Bearer ,, ", [Challenge(scheme: "Bearer")]),
        ("Bearer a = \t\"b\" ,c\t=d", [Challenge(scheme: "Bearer", parameters: ["a": "b", "c": "d"])]),
        (#"Bearer a="b, Basic c=\"d\"",e="""#, [Challenge(scheme: "Bearer", parameters: ["a": #"b, Basic c="d""#, "e": ""])]),
        (#"Bearer a="ü\ü""#, [Challenge(scheme: "Bearer", parameters: ["a": "üü"])]),
        ("Bearer scope=\"a b\"", [Challenge(scheme: "Bearer", parameters: ["scope": "a b"])]),
    ])
    func `several challenges are read from one header, or from several joined`(header: String, expected: [Challenge]) {
        #expect(Challenge.challenges(in: header) == expected, "\(header)")
    }

    @Test(arguments: [
        ("", []), (" , ,, ", []), ("=", []), ("a=b", []), (#""x""#, []), (#""Bearer, Basic""#, []), ("ü, Bearer", ["Bearer"]),
        (#"Bearer error="invalid"#, ["Bearer"]), (#"Bearer error="x\"#, ["Bearer"]), ("Bearer error=", ["Bearer"]),
        ("Bearer error=, Basic", ["Bearer", "Basic"]), ("Bearer (a, b), Basic", ["Bearer", "b", "Basic"]),
        ("Bearer, a=b", ["Bearer"]),
        (#"Bearer x;"a, b", Basic"#, ["Bearer", "x", "Basic"]), ("Bearer a b", ["Bearer", "a"]),
    ])
    func `parts of a header that break the syntax are skipped`(header: String, schemes: [String]) {
        #expect(Challenge.challenges(in: header).map(\.scheme) == schemes, "\(Challenge.challenges(in: header))")
    }

    // RFC 6750 §3.1: an invalid token calls for a new one, an insufficient scope doesn't.
    @Test(arguments: ["invalid_token", "insufficient_scope"])
    func `the Bearer error is found among other challenges`(error: String) throws {
        let header = #"DPoP algs="ES256", error="use_dpop_nonce", bearer realm="a, b", scope="x y", error="\#(error)", Basic"#
        let challenge = try #require(Challenge.challenges(in: header).first { $0.hasScheme("Bearer") })
        #expect(challenge["error"] == error && challenge["scope"] == "x y")
    }

    // RFC 9110 §11.1 and §11.2: names are compared without case, and none may be repeated.
    @Test func `names are compared without case, and the first of a repeated parameter counts`() throws {
        let header = #"BEARER Error="invalid_token" ERROR="other" realm=x"#
        let challenge = try #require(Challenge.challenges(in: header).first)
        #expect(challenge.hasScheme("Bearer") && !challenge.hasScheme("Basic"))
        #expect(challenge["ERROR"] == "invalid_token" && challenge["realm"] == "x" && challenge["scope"] == nil)
    }

    // RFC 9700 §4.9.
    @Test func `the description shows only the scheme and the error, in one line`() {
        let challenge = Challenge(
            scheme: "Bearer", token68: "secret", parameters: ["error": "odd\u{1b}\nerror", "nonce": "secret"])
        var dumped = ""
        dump(challenge, to: &dumped)
        #expect("\(challenge)" == "AuthenticationChallenge(Bearer, error odd error)")
        #expect(!(dumped + String(reflecting: challenge)).contains("secret"))
    }

    @Test func `the time for a hostile header grows only with its length`() {
        for part in [",", "a", "a ", "a=", "a=b,", "\"", "\\\"", "a b ", "= ", "a==,"] {
            let challenges = Challenge.challenges(in: String(repeating: part, count: 100_000 / part.utf8.count))
            #expect(challenges.count <= 100_000)
        }
    }
}
