import AccessTokens
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("A log line says what happened, and no foreign text can forge one")
struct EventTextTests {
    private struct Unreachable: Error {}

    private struct Coded: TokenLoadFailure {
        var remedy = TokenServiceError.Remedy.retry
        var logCode: String?
    }

    private static func line(for error: any Error) throws -> String {
        let scene = Scene(), events = scene.service.events()
        _ = scene.call()
        scene.fail(try scene.load(), with: error)
        return "\(try #require(scene.told(by: events).last))"
    }

    @Test func `a failure's line has its code, its cause and its remedy`() throws {
        let lines = [
            try Self.line(for: Unreachable()), try Self.line(for: ScriptedFailure.grantRefused),
            try Self.line(for: ScriptedFailure.clientRefused), try Self.line(for: Coded()),
            try Self.line(for: SalvagedGrant(.secret(), reason: ScriptedFailure.clientRefused)),
            try Self.line(for: TokenServiceError(.deadlineExceeded)),
            try Self.line(for: TokenServiceError(.loadFailed, underlying: ScriptedFailure.grantRefused, remedy: .signIn)),
        ]
        let causes = [
            "Unreachable remedy=retry", "invalid_grant remedy=signIn", "invalid_client remedy=clientRegistration",
            "Coded remedy=retry", "invalid_client remedy=clientRegistration", "deadlineExceeded remedy=retry",
            "invalid_grant remedy=signIn",
        ]
        #expect(lines == causes.map { "loadFailed generation=0 load=1 callers=1 error=loadFailed cause=\($0)" })
    }

    @Test func `an event without a load or an error omits those fields`() throws {
        let store = ScriptedStore(), scene = Scene(store: store), events = scene.service.events()
        store.fail(.remove)
        scene.reset()
        scene.advance(by: .seconds(1))
        #expect(
            scene.told(by: events).map { "\($0)" } == [
                "reset generation=1", "storeFailed generation=1 error=storeFailed cause=Failure remedy=retry",
            ])
    }

    @Test(arguments: [
        ("a\nb", "a\\nb"), ("a\r\nloadSucceeded", "a\\r\\nloadSucceeded"), ("a b=c", "a_b_c"),
        ("\u{2028}\u{1B}[2K", "\\u{2028}\\u{1B}[2K"), ("ä\u{202E}", "\\u{00E4}\\u{202E}"), ("\\n", "\\\\n"), ("", ""),
    ])
    func `a server's error code can't start a new line or field`(code: String, shown: String) throws {
        let line = try Self.line(for: Coded(logCode: code))
        #expect(line == "loadFailed generation=0 load=1 callers=1 error=loadFailed cause=\(shown) remedy=retry")
        #expect(line.unicodeScalars.allSatisfy { (0x20...0x7E).contains($0.value) })
    }

    @Test func `a long code is cut`() throws {
        let line = try Self.line(for: Coded(logCode: String(repeating: "x", count: 100_000)))
        #expect(line.count < 300 && line.contains("xxx… remedy=retry"))
        #expect(try Self.line(for: Coded(logCode: String(repeating: "x", count: 200))).contains("x remedy=retry"))
    }

    @Test func `a token's type and scope can't start a new line either`() {
        let token = AccessToken("a", tokenType: "Bearer\nforged", scope: "read\r\nforged\u{2029}")
        #expect("\(token)" == "AccessToken(token of another type, 1 scope)")
        #expect("\(AccessToken("a", tokenType: "dpop", scope: "mail  drive"))" == "AccessToken(DPoP token, 2 scopes)")
    }

    @Test(arguments: ["\n", "\r", "\u{0B}", "\u{0C}", "\u{85}", "\u{2028}", "\u{2029}", "\u{1B}", "\u{0}", "\u{7F}"])
    func `a cause in an error's text may be in any language, but can't start a new line`(control: String) {
        struct Foreign: Error, CustomStringConvertible { let description: String }
        let error = TokenServiceError(.loadFailed, underlying: Foreign(description: "Schlüssel fehlt\(control)2026 forged"))
        #expect(error.description.hasPrefix("Loading a token failed. Cause: Schlüssel fehlt\\"))
        #expect(!error.description.unicodeScalars.contains { $0.description == control })
        #expect(error.localizedDescription == error.description)
    }

    @Test(arguments: [("it is locked", "it is locked."), ("Unlock it!", "Unlock it!"), ("Lost()", "Lost().")])
    func `a cause in an error's text ends with a punctuation mark`(cause: String, sentence: String) {
        struct Foreign: Error, CustomStringConvertible { let description: String }
        let error = TokenServiceError(.storeFailed, underlying: Foreign(description: cause))
        #expect(error.description.hasSuffix(" Cause: \(sentence)"))
    }

    @Test func `every code has a text that says more than its name, and a remedy that helps`() {
        let remedies: [(TokenServiceError.Code, TokenServiceError.Remedy)] = [
            (.loadFailed, .retry), (.loadTimedOut, .retry), (.deadlineExceeded, .retry), (.reset, .signIn),
            (.tokenExpiredOnArrival, .retry), (.tooManyInvalidations, .programChange),
            (.storeFailed, .retry), (.loaderWaitsForItself, .programChange),
        ]
        for (code, remedy) in remedies {
            let error = TokenServiceError(code)
            #expect(error.remedy == remedy, "\(code)")
            #expect(error.description.split(separator: " ").count >= 4 && error.description.hasSuffix("."))
            #expect((error as any Error).localizedDescription == error.description)
        }
        let headlines = Set(
            [.retry, .signIn, .clientRegistration, .signInOrRegistration, .programChange].map {
                TokenServiceError(.loadFailed, remedy: $0).description
            })
        #expect(headlines.count == 5)
    }
}
