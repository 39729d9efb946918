import AccessTokens
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Answers that are composed at random of everything that servers, gateways and attackers get wrong.
///
/// A case's argument is its seed. `ANSWER_SEED=42 swift test --filter HostileAnswerTests` starts with that seed. `.ci/fuzz` looks
/// for more with the coverage of the code.
@Suite(.inRealTime)
struct HostileAnswerTests {
    static let seeds: [UInt64] = {
        let first = ProcessInfo.processInfo.environment["ANSWER_SEED"].flatMap(UInt64.init) ?? 1
        return (0..<12).map { first &+ $0 }
    }()

    private static let now = Date(timeIntervalSince1970: 1_795_867_200)
    private static let sent = "s3nt-refresh-4Vx9"

    /// An answer, and what may be expected of it.
    private struct Answer {
        var body: [UInt8] = []
        /// The new refresh token that must not be lost; `nil`: there is none, or it can't be read.
        var refreshToken: String?
        var tokens: [String] = []
        /// Whether nothing in it breaks a rule.
        var isSound = true
        var lifetime: Double?

        init(_ random: inout SplitMix64) {
            let isForm = Bool.random(using: &random), number = UInt32.random(in: 0...(.max), using: &random)
            let access = "acc3ss-\(number)-7Qk", refresh = "r3fresh-\(number)-9Zt"
            var members = [("access_token", "\"\(access)\""), ("token_type", "\"Bearer\""), ("refresh_token", "\"\(refresh)\"")]
            tokens = [access, refresh]
            refreshToken = refresh
            members += lifetimes(&random)
            for _ in 0..<Int.random(in: 0...2, using: &random) { spoil(&members, &random) }
            members.shuffle(using: &random)
            let json = "{" + members.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
            var form = members.map { "\($0)=\($1.filter { !"\"{}[]\\<>".contains($0) })" }.joined(separator: "&")
            if Int.random(in: 0..<6, using: &random) == 0 {
                // Percent-encodings that are not UTF-8, in a member that nobody reads.
                form = "x=%ff%FE%&" + form
                isSound = isSound && !isForm
            }
            body = Array((isForm ? form : json).utf8)
            surround(json, form, &random)
        }

        /// Adds lifetimes that may disagree; the first one by the documented order counts.
        private mutating func lifetimes(_ random: inout SplitMix64) -> [(String, String)] {
            let end = Int(HostileAnswerTests.now.timeIntervalSince1970)
            let all = [
                ("expires_in_sec", 60, 60), ("expires_in", 70, 70), ("expires", 80, 80), ("expires_on", end + 90, 90),
                ("expires_at", end + 100, 100),
            ]
            let chosen = all.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
            lifetime = chosen.first.map { Double($0.2) } ?? 300
            return chosen.map { ($0.0, Bool.random(using: &random) ? "\($0.1)" : "\"\($0.1)\"") }
        }

        /// Adds a member that is wrong, or hostile.
        private mutating func spoil(_ members: inout [(String, String)], _ random: inout SplitMix64) {
            let depth = [5, 199, 1000, 20_000].randomElement(using: &random) ?? 1000
            switch Int.random(in: 0..<7, using: &random) {
            case 0: members.append(("access_token", "\"\(tokens[0])\""))
            case 1: members.append(("expires_in", "-1e999"))
            case 2: members.append(("deep", String(repeating: "[", count: depth) + String(repeating: "]", count: depth)))
            case 3:
                members.append(("deep", String(repeating: "{\"a\":", count: depth) + "1" + String(repeating: "}", count: depth)))
            case 4: members.append(("error_description", "\"you sent \(HostileAnswerTests.sent), and get \(tokens[1])\""))
            case 5: members.append(("error", "\"invalid_\(tokens[0])\""))
            default: members.append(("token_type", "{\"access_token\":\"\(tokens[0])\"}"))
            }
            isSound = false
        }

        /// Adds what may stand before and after an answer.
        private mutating func surround(_ json: String, _ form: String, _ random: inout SplitMix64) {
            switch Int.random(in: 0..<10, using: &random) {
            case 0: body = Array((json + "&" + form).utf8)
            case 1: body = Array((form + "&" + json).utf8)
            case 2: body += Array(repeating: UInt8(ascii: " "), count: max(0, ResponseMembers.maximumSize - body.count))
            case 3:
                body.append(0xFF)
                // The byte may be a part of it.
                if body.starts(with: form.utf8), form.hasSuffix(tokens[1]) { refreshToken = nil }
            case 4: body += Array("\r\n\0".utf8)
            case 5:
                body = Array("<html>".utf8) + body
                refreshToken = nil
            case 6:
                body += Array(repeating: UInt8(ascii: " "), count: ResponseMembers.maximumSize)
                refreshToken = nil
            default: return
            }
            isSound = false
        }
    }

    @Test(arguments: seeds)
    func `18: whatever an answer is made of, it is a token or a clear error, nothing is lost, and no secret is shown`(
        seed: UInt64
    ) async throws {
        var random = SplitMix64(seed: seed)
        for turn in 0..<60 {
            let answer = Answer(&random), status = [200, 200, 201, 400, 503].randomElement(using: &random) ?? 200
            let label =
                "seed \(seed), turn \(turn), status \(status): \(String(decoding: answer.body.prefix(300), as: UTF8.self))"
            let client = try OAuthClient(
                id: "me", authentication: .clientSecretPost("cl1ent-s3cret"),
                tokenURL: #require(URL(string: "https://as.example/token")),
                transport: ScriptedTransport { TransportResponse(status: status, body: Data(answer.body)) },
                wallClock: { Self.now })
            let previous = AccessToken("0ld-access-2Wm", refreshToken: Self.sent)
            var kept: String?
            do {
                let token = try await client.token(for: .refreshToken(Self.sent), replacing: previous).token
                kept = token.refreshToken
                #expect(token.value == answer.tokens[0] && token.tokenType == "Bearer", "\(label)")
                if answer.isSound { #expect(token.lifetime == answer.lifetime.map { .seconds($0) }, "\(label)") }
            } catch {
                let salvaged = error as? SalvagedGrant
                kept = salvaged?.grant.refreshToken
                let reason = try #require((salvaged?.reason ?? error) as? OAuthError, "\(label)")
                #expect(!answer.isSound || status >= 400, "\(label)")
                let shown = texts(reason) + texts(reason.error as Any) + texts(reason.serverDescription as Any) + texts(error)
                for secret in answer.tokens + [Self.sent, "cl1ent-s3cret", "0ld-access-2Wm"] {
                    #expect(!shown.contains(secret), "\(label)")
                }
                #expect("\(reason)".unicodeScalars.count <= 1000 && "\(reason)".hasSuffix("."), "\(label)")
            }
            // A refusal with an error's status issues nothing.
            if status < 300, let expected = answer.refreshToken { #expect(kept == expected, "\(label)") }
        }
    }
}
