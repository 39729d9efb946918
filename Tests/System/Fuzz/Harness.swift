// Compiled by `fuzz` together with the sources of AccessTokensOAuth and AccessTokensDiscovery, as one module, so that it reaches the
// parsers.
import AccessTokens
import AccessTokensDPoP
import Foundation
import AccessTokensHTTP

/// Called by libFuzzer with each input, which goes to the parser that the environment's `PARSER` names.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    switch Fuzz.parser {
    case "challenges": Fuzz.challenges(String(decoding: input, as: UTF8.self))
    case "callbacks": Fuzz.callback(String(decoding: input, as: UTF8.self))
    case "metadata": Fuzz.metadata(Data(input))
    case "keys": Fuzz.key(Data(input))
    case "nonces": Fuzz.nonce(String(decoding: input, as: UTF8.self))
    case "waits": Fuzz.retryAfter(String(decoding: input, as: UTF8.self))
    default:
        // The first byte chooses the status.
        guard let first = input.first else { return 0 }
        Fuzz.response(Data(input.dropFirst()), status: Fuzz.statuses[Int(first) % Fuzz.statuses.count])
    }
    return 0
}

/// The properties that must hold for every input.
enum Fuzz {
    static let parser = ProcessInfo.processInfo.environment["PARSER"]
    static let statuses = [200, 200, 200, 400, 401, 503]
    static let secret = "s3cr3t"
    static let previous = AccessToken("old", scope: "a b", refreshToken: "r1")
    static let now = Date(timeIntervalSince1970: 784_111_747)

    static func require(_ condition: Bool, _ message: String) {
        guard !condition else { return }
        FileHandle.standardError.write(Data("PROPERTY VIOLATED: \(message)\n".utf8))
        abort()
    }

    /// Checks that there is a usable token or a printable error, and that no new refresh token is lost.
    static func response(_ body: Data, status: Int) {
        let text = String(decoding: body, as: UTF8.self)
        let response = TransportResponse(status: status, headers: ["Content-Type": text, "Retry-After": text], body: body)
        let reader = ResponseReader(
            response: response, secrets: [secret, "old", "r1"], acceptedTokenTypes: ["Bearer"],
            lifetimeWhenMissing: .seconds(300),
            now: now)
        members(of: body, reader.members)
        let first = Result { try reader.token(for: .clientCredentials(), replacing: previous).token }
        let renewed = Result { try reader.token(for: .refreshToken("r1"), replacing: previous).token }
        switch first {
        case .success(let token):
            check(token)
            require((try? renewed.get())?.refreshToken == token.refreshToken ?? "r1", "a refresh token is lost")
        case .failure(let error): check(error)
        }
        switch renewed {
        case .success(let token):
            require(token.refreshToken != nil && token.scope != nil, "nothing to renew with")
            check(token)
        case .failure(let salvaged as SalvagedGrant):
            let refreshToken = salvaged.grant.refreshToken ?? ""
            require(!refreshToken.isEmpty && !refreshToken.utf8.elementsEqual("r1".utf8), "an old grant for a new one")
            check(salvaged.reason)
        case .failure(let error):
            check(error)
            require(status != 200 || newRefreshToken(in: body) == nil, "a new refresh token is lost")
        }
    }

    /// Returns the refresh token in a body that a decoder accepts, or in a form, unless it is the one that was sent.
    static func newRefreshToken(in body: Data) -> String? {
        struct Members: Decodable { let refresh_token: String? }
        let text =
            (try? JSONDecoder().decode(Members.self, from: body))?.refresh_token ?? parameter("refresh_token", of: body) ?? ""
        return text.isEmpty || text.utf8.elementsEqual("r1".utf8) || body.count > 1 << 20 ? nil : text
    }

    /// Returns a parameter of a form as Foundation reads it; `nil` if it isn't one or can't be read.
    static func parameter(_ name: String, of body: Data) -> String? {
        let isForm = body.allSatisfy { $0.isAlphanumeric || "_-.~%=&".utf8.contains($0) }
        guard isForm, let form = String(validating: body, as: UTF8.self) else { return nil }
        // Foundation refuses a broken escape, and reads no text that isn't UTF-8.
        guard let items = URLComponents(string: "x:?\(form)", encodingInvalidCharacters: false)?.queryItems else { return nil }
        return items.last { $0.name == name && $0.value?.isEmpty == false && $0.value?.contains("\u{FFFD}") == false }?.value
    }

    /// Checks that the scanner accepts everything that a decoder accepts, and reads the same strings.
    static func members(of body: Data, _ members: ResponseMembers) {
        struct Anything: Decodable {
            let text: String?
            /// Decodes everything, since Foundation checks a number only when it is decoded.
            init(from decoder: any Decoder) throws {
                let value = try decoder.singleValueContainer()
                text = try? value.decode(String.self)
                guard text == nil, !value.decodeNil(), (try? value.decode(Bool.self)) == nil,
                    (try? value.decode(Double.self)) == nil
                else { return }
                if (try? value.decode([Anything].self)) == nil { _ = try value.decode([String: Anything].self) }
            }
        }
        require(!"\(members)".contains(secret), "a member is shown")
        guard body.count <= 1 << 20, String(validating: body, as: UTF8.self) != nil, !body.contains(0),
            let decoded = try? JSONDecoder().decode([String: Anything].self, from: body),
            // The decoder doesn't check a value whose name is repeated.
            (try? JSONSerialization.jsonObject(with: body)) != nil
        else { return }
        // Foundation allows deeper nesting.
        guard body.count(where: { "[{".utf8.contains($0) }) < 200 else { return }
        require(members.problem?.hasSuffix("is repeated") ?? true, "valid JSON is refused: \(members.problem ?? "")")
        for (name, member) in decoded {
            guard let text = member.text, !text.isEmpty, let read = members[name] else { continue }
            require(read.utf8.elementsEqual(text.utf8), "\(name) is read differently")
        }
    }

    static func check(_ token: AccessToken) {
        let strings = [token.value, token.tokenType] + [token.scope].compactMap { $0 }
        require(strings.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { 0x20...0x7E ~= $0 } }, "an unprintable member")
        require(token.refreshToken?.isEmpty != true, "an empty refresh token")
        let end = token.refreshTokenExpiration
        require(end.map { token.refreshToken != nil && now < $0 } ?? true, "a refresh token that has expired already")
        let lifetime = token.lifetime ?? .seconds(-1)
        require(Duration.zero <= lifetime && lifetime <= .longest, "a lifetime out of bounds")
        require(token.refreshIn.map { .zero < $0 && $0 < lifetime } ?? true, "a refresh outside the lifetime")
        require("\(token)".contains("lifetime"), "no description")
    }

    static let signIn = Result {
        guard let url = URL(string: "https://as.example/") else { throw URLError(.badURL) }
        let client = try OAuthClient(id: "me", tokenURL: url, issuer: "https://as.example")
        return try SignInRequest(client, authorizationURL: url)
    }

    /// Checks that there is a grant of this sign-in or a printable error; the text `STATE` is replaced by the sign-in's state.
    static func callback(_ query: String) {
        guard let signIn = try? signIn.get(), let state = value("state", in: signIn.url) else {
            return require(false, "no sign-in")
        }
        guard let url = URL(string: "app:/cb?" + query.replacing("STATE", with: state)) else { return }
        do {
            let grant = try signIn.grant(from: url)
            require(value("state", in: url) == state, "another sign-in's state")
            require(["https://as.example", nil].contains(value("iss", in: url)), "another server's code")
            require(grant.form["code"]?.isEmpty == false && grant.form["code_verifier"] != nil, "no grant")
        } catch {
            guard let error = error as? OAuthError else { return require(false, "an error of another type") }
            require(error.code == .callbackMismatch || error.code == .refused, "another code")
            checkTexts(error, without: state)
        }
    }

    /// Returns a parameter as Foundation reads it, with each plus read as a space.
    static func value(_ name: String, in url: URL) -> String? {
        let items = URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems
        return items?.last { $0.name == name && $0.value?.isEmpty == false }?.value
    }

    static func check(_ error: any Error) {
        guard let error = error as? OAuthError else { return require(false, "an error of another type") }
        checkTexts(error, without: secret)
        require(error.retryAfter.map { .zero < $0 && $0 <= .longest } ?? true, "a wait out of bounds")
        let known = error.error.flatMap { Refusal.codes[$0] }, meaning = known?.type == nil ? known?.meaning : nil
        let isMeant = meaning == .userNeeded || meaning == .grantRefused && (error.status ?? 0) < 500
        require(error.remedy != .signIn || isMeant, "signed out")
    }

    static func checkTexts(_ error: OAuthError, without secret: String) {
        let texts = ["\(error)", error.error ?? "", error.serverDescription ?? ""]
        for text in texts {
            require(!text.contains(secret), "a secret is shown")
            require(text.unicodeScalars.count <= 1000, "a long text")
            require(text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }, "a control character")
        }
    }

    /// Checks that there are valid endpoints or printable errors.
    static func metadata(_ body: Data) {
        let server = AuthorizationServer(issuer: "https://as.example", members: ResponseMembers(body))
        for name in ["token_endpoint", "authorization_endpoint", "revocation_endpoint"] {
            do {
                let url = try server.endpoint(name)
                require(
                    Origin(url)?.isPrivate == true && url.fragment == nil && url.user == nil, "an endpoint that anyone can read")
            } catch {
                guard let error = error as? OAuthError else { return require(false, "an error of another type") }
                require(error.code == .invalidMetadata, "another code")
                checkTexts(error, without: secret)
            }
        }
        do {
            _ = try server.client(id: "me", authentication: .clientSecretPost("\(secret)-1"))
        } catch {
            guard let error = error as? OAuthError else { return require(false, "an error of another type") }
            checkTexts(error, without: "\(secret)-1")
        }
    }

    /// Checks that there is a key without a private part that survives being written and read, or an error that quotes nothing.
    static func key(_ text: Data) {
        do {
            let key = try PublicJWK(json: text)
            require((try? PublicJWK(json: Data(key.json.utf8))) == key, "a key is read differently")
            require(key.thumbprint.utf8.count == 43 && !key.json.contains("\"d\""), "no thumbprint, or a private part")
        } catch {
            require((error as? DPoPError)?.code == .invalidKey && "\(error)".utf8.count < 300, "another error")
        }
    }

    static let dpop = Result {
        try DPoPKey(.p256(Data(repeating: 1, count: 64)), algorithm: "ES256") { _ in Data(repeating: 7, count: 64) }
    }

    /// Checks that there is a nonce that fits into a claim unchanged, or an error that doesn't quote it.
    static func nonce(_ text: String) {
        guard let key = try? dpop.get(), let url = URL(string: "https://as.example/") else { return require(false, "no key") }
        do {
            guard let nonce = try key.nonce(in: ["dpop-nonce": text], from: url) else { return require(false, "no nonce") }
            require(nonce.utf8.elementsEqual(text.utf8) && 1...1024 ~= nonce.utf8.count, "another nonce")
            require(nonce.utf8.allSatisfy { 0x21...0x7E ~= $0 && $0 != 0x22 && $0 != 0x5C }, "a nonce that needs escapes")
        } catch {
            require((error as? DPoPError)?.code == .invalidNonce, "another error")
            // The error's fixed text is ignored: the fuzzer generates parts of it, which would look like a quotation.
            let usual = Result { try key.nonce(in: ["dpop-nonce": " "], from: url) }
            guard text.utf8.count <= 1024, case .failure(let other) = usual else { return }
            require("\(error)" == "\(other)", "a nonce is shown")
        }
    }

    static func retryAfter(_ text: String) {
        let answer = TransportResponse(status: 429, headers: ["Retry-After": text], body: Data())
        let wait = RetryAfter.wait(in: answer, now: now)
        require(wait.map { .zero < $0 && $0 <= .longest } ?? true, "a wait out of bounds")
    }

    /// Checks that challenges that were read can be written and read again unchanged, even twice in one header.
    static func challenges(_ header: String) {
        let challenges = AuthenticationChallenge.challenges(in: header)
        let written = challenges.map(written(_:)).joined(separator: ", ")
        require(AuthenticationChallenge.challenges(in: written) == challenges, "reads \(written) differently")
        let twice = AuthenticationChallenge.challenges(in: "\(written),\(written)")
        require(twice == challenges + challenges, "reads \(written) differently when it comes twice")
        for challenge in challenges { require("\(challenge)".utf8.count < 2000, "a long text") }
    }

    static func written(_ challenge: AuthenticationChallenge) -> String {
        let parameters = challenge.parameters.map { name, value in
            // By scalars, not characters: a combining mark may follow a character that must be escaped.
            let escaped = value.unicodeScalars.map { "\\\"".unicodeScalars.contains($0) ? "\\\($0)" : "\($0)" }
            return "\(name)=\"\(escaped.joined())\""
        }
        return ([challenge.scheme] + (challenge.token68.map { [$0] } ?? [parameters.joined(separator: ",")]))
            .joined(separator: " ")
    }
}
