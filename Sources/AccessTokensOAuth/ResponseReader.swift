import AccessTokens
import AccessTokensHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads a token, or an error, from an authorization server's answer.
///
/// Source: RFC 6749 §5.
struct ResponseReader {
    let response: TransportResponse
    let asked: OAuthError.Asked?
    let secrets: [String]
    let acceptedTokenTypes: Set<String>
    let lifetimeWhenMissing: Duration?
    /// The names of the members that a token keeps.
    let keptMembers: Set<String>, shownMembers: Set<String>
    /// How the program reads the answer to a grant.
    let reading: @Sendable (ResponseMembers, Int) -> ResponseReading
    let proof: Answered?
    /// When an assertion was sent; `nil` if none was.
    let assertionTime: Date?
    let now: Date
    let members: ResponseMembers

    /// The proof of the request, and the nonce in the answer.
    struct Answered {
        let proof: RequestProof
        let keyThumbprint: String
        let nonce: Result<String?, any Error>
    }

    init(
        response: TransportResponse, asked: OAuthError.Asked? = nil, secrets: [String], acceptedTokenTypes: Set<String>,
        lifetimeWhenMissing: Duration?, keptMembers: Set<String> = [], shownMembers: Set<String> = [],
        reading: @escaping @Sendable (ResponseMembers, Int) -> ResponseReading = { _, _ in .asUsual },
        proof: Answered? = nil, assertionTime: Date? = nil, now: Date
    ) {
        self.response = response
        self.asked = asked
        // A server may quote the nonce that it sends.
        self.secrets = secrets + (proof == nil ? [] : response.header("DPoP-Nonce").map { [$0] } ?? [])
        self.proof = proof
        self.assertionTime = assertionTime
        self.acceptedTokenTypes = acceptedTokenTypes
        self.lifetimeWhenMissing = lifetimeWhenMissing
        (self.keptMembers, self.shownMembers) = (keptMembers, shownMembers)
        self.reading = reading
        self.now = now
        members = ResponseMembers(response.body, canBeForm: true)
    }

    /// Returns the token in the answer to a grant.
    ///
    /// If the grant was good for one use, even an invalid answer must not be discarded: there is no second one, and to the server
    /// the old refresh token would look stolen. So if the access token can't be used, the refresh token is passed on together
    /// with the reason.
    ///
    /// - Throws: ``OAuthError``, inside a `SalvagedGrant` if the answer has a new refresh token for a grant that can't be
    ///   repeated.
    func token(for grant: Grant, replacing previous: AccessToken?) throws -> TokenResponse {
        let isReadable = members.problem == nil && !(300..<400).contains(response.status)
        let meaning = isReadable ? reading(members, response.status).meaning : .asUsual
        do throws(OAuthError) {
            let token: AccessToken
            switch meaning {
            case .asUsual:
                try requireSuccess(of: grant, replacing: previous)
                token = try completed(try readToken(), for: grant, replacing: previous)
            case .token(let read): token = try completed(read, for: grant, replacing: previous)
            case .refused(let code, let explanation): throw refusal(code, explanation, of: grant, replacing: previous)
            }
            return TokenResponse(token: token, members: members)
        } catch {
            let read: String? = if case .token(let token) = meaning { token.refreshToken } else { nil }
            guard !grant.isRepeatable, let refreshToken = salvagedRefreshToken(for: grant, read: read) else { throw error }
            let scope = grant.refreshToken == nil ? nil : previous?.scope
            var error = error
            // A server that issues a refresh token keeps the session.
            if error.remedy == .signInOrRegistration { error.remedy = .retry }
            // Each attempt spends a refresh token, and only a change at the server helps.
            if error.remedy == .clientRegistration, error.retryAfter == nil { error.retryAfter = .seconds(3600) }
            throw SalvagedGrant(
                AccessToken(
                    "", lifetime: .zero, scope: scope, refreshToken: refreshToken,
                    refreshTokenExpiration: expiration(of: refreshToken, replacing: previous),
                    keyThumbprint: proof?.keyThumbprint, members: keptMembers(of: previous, for: grant)), reason: error)
        }
    }

    /// The members of the token that a refresh replaces.
    private func keptMembers(of previous: AccessToken?, for grant: Grant) -> [String: String] {
        grant.refreshToken == nil ? [:] : previous?.members ?? [:]
    }

    /// Returns the answer's members if they can be read.
    func readableMembers() throws(OAuthError) -> ResponseMembers {
        try requireSuccess()
        if let problem = members.problem { throw unreadable(problem) }
        return members
    }

    /// Returns the nonce with which to send the request once more; `nil` unless the answer is definitely `use_dpop_nonce`.
    ///
    /// Only such an answer means that nothing was spent, since the server has checked the proof alone (RFC 9449 §8).
    ///
    /// - Throws: ``OAuthError`` if the server asks for a nonce that can't be used.
    func nonceForAnotherProof(isSecond: Bool = false) throws(OAuthError) -> String? {
        guard let proof, response.status == 400 || response.status == 401, members.problem == nil,
            members["error"] == Self.nonceDemand
        else { return nil }
        func useless(_ problem: String) -> OAuthError {
            var failure = failure(.uselessNonce(problem))
            failure.error = Self.nonceDemand
            return failure
        }
        let nonce: String?
        do {
            nonce = try proof.nonce.get()
        } catch {
            // The text of any other error may contain a secret.
            throw useless(error is any TokenLoadFailure ? "\(error)" : "\(type(of: error)) reports an unusable nonce.")
        }
        guard let nonce else { throw useless("It sends none.") }
        guard nonce != proof.proof.nonce else { throw useless("It sent the nonce that it had refused.") }
        guard !isSecond else { throw useless("It refused the nonce that it had just sent.") }
        return nonce
    }

    private static let nonceDemand = "use_dpop_nonce"

    /// Throws the server's error if it refused the request.
    ///
    /// - Parameters:
    ///   - grant: The grant that was presented, if it was one.
    ///   - previous: The token that it was to replace.
    ///   - isBodyIgnored: Whether only the status counts. Some servers report an error with status 200, but if no token is
    ///     expected, the body has no meaning (RFC 7009 §2.2).
    func requireSuccess(
        of grant: Grant? = nil, replacing previous: AccessToken? = nil, isBodyIgnored: Bool = false
    ) throws(OAuthError) {
        guard !(300..<400).contains(response.status) else { throw failure(.redirected) }
        let isSuccess = (200..<300).contains(response.status)
        if isSuccess, isBodyIgnored { return }
        let isRefusal = members.problem == nil && (members["error"] != nil || grant != nil && members.isRefusal)
        guard isSuccess, !isRefusal else {
            let isReadable = members.problem == nil
            throw refusal(
                isReadable ? members.refusalCode : nil, isReadable ? members.refusalWords : nil, of: grant, replacing: previous)
        }
    }

    /// Returns what the answer itself says of the token.
    ///
    /// Members that are `null` or empty count as absent.
    ///
    /// Source: RFC 6749 §5.1, §3.2; `refresh_in` is Microsoft's.
    private func readToken() throws(OAuthError) -> AccessToken {
        if let problem = members.problem { throw unreadable(problem) }
        guard let value = try text("access_token") else {
            throw unreadable("access_token \(members.value("access_token") == nil ? "is missing" : "has an invalid value")")
        }
        let scope = try text("scope"), type = try text("token_type"), refreshToken = try text("refresh_token")
        _ = try text("error")
        return AccessToken(
            value, tokenType: type ?? "", lifetime: members.lifetime(from: RetryAfter.moment(of: response, now: now)),
            refreshIn: members.seconds("refresh_in"), scope: scope, refreshToken: refreshToken)
    }

    /// Returns a token that can be used, with what the answer doesn't say.
    private func completed(
        _ read: AccessToken, for grant: Grant, replacing previous: AccessToken?
    ) throws(OAuthError) -> AccessToken {
        try requirePrintable("access_token", read.value)
        try requirePrintable("token_type", read.tokenType)
        try requirePrintable("scope", read.scope ?? "a")
        // RFC 6749 §6 and §3.3: a refresh keeps what the server doesn't change. A refresh token may be any text, since forms
        // encode it.
        let refreshToken = read.refreshToken.flatMap { $0.isEmpty ? nil : $0 } ?? grant.refreshToken
        let keptScope = grant.refreshToken == nil ? nil : grant.form["scope"] ?? previous?.scope
        let type = try tokenType(named: read.tokenType)
        // Only recommended (RFC 6749 §5.1).
        let lifetime = read.lifetime.flatMap { $0 > .zero ? $0 : nil } ?? lifetimeWhenMissing
        // An extension: an invalid value must not invalidate the token.
        let refreshIn = read.refreshIn.flatMap { refreshIn in
            lifetime.flatMap { .zero < refreshIn && refreshIn < $0 ? refreshIn : nil }
        }
        var kept = keptMembers(of: previous, for: grant)
        for name in keptMembers { if let text = members.value(name)?.kept { kept[name] = text } }
        kept.merge(read.members) { $1 }
        return AccessToken(
            read.value, tokenType: type, lifetime: lifetime, refreshIn: refreshIn, scope: read.scope ?? keptScope,
            refreshToken: refreshToken,
            refreshTokenExpiration: read.refreshTokenExpiration ?? expiration(of: refreshToken, replacing: previous),
            keyThumbprint: type.lowercased() == "dpop" ? proof?.keyThumbprint : nil, members: kept, showing: shownMembers)
    }

    private func text(_ name: String) throws(OAuthError) -> String? {
        switch members.value(name) {
        case .string(let text): return text.isEmpty ? nil : text
        case nil: return nil
        default: throw unreadable("\(name) has the wrong type")
        }
    }

    /// Refuses line breaks, which would end the header that carries an access token (`VSCHAR` in RFC 6749).
    private func requirePrintable(_ name: String, _ text: String) throws(OAuthError) {
        guard text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }), !text.isEmpty || name == "token_type" else {
            throw unreadable("\(name) has an invalid value")
        }
    }

    /// Returns the token's type as a specification spells it: resource servers may be less tolerant than authorization servers.
    ///
    /// Many servers of bearer tokens name no type. A server that was asked for a bound token must say that it has bound it.
    private func tokenType(named name: String) throws(OAuthError) -> String {
        let named = name.trimming { $0 == " " }
        if named.isEmpty, proof != nil { throw failure(.unboundToken) }
        let type = named.isEmpty ? "Bearer" : named
        guard let accepted = acceptedTokenTypes.first(where: { $0.lowercased() == type.lowercased() }) else {
            if named.isEmpty { throw unreadable("token_type is missing") }
            throw failure(proof != nil && type.lowercased() == "bearer" ? .unboundToken : .unsupportedTokenType(safe(type)))
        }
        // Any other name that the program accepts is one for bearer tokens.
        return Self.typesOfTheirOwn.contains(accepted.lowercased()) ? accepted : "Bearer"
    }

    /// Source: IANA registry "OAuth Access Token Types", and the draft of `mac`.
    private static let typesOfTheirOwn: Set<String> = ["dpop", "pop", "n_a", "mac"]

    /// Returns when a refresh token expires: as this answer says, or as before if the answer has neither a new token nor an
    /// expiration.
    ///
    /// The lifetime counts from the arrival of the answer. The date is advice, for the program: a clock that was wrong, or is
    /// wrong later, must not end the session, so the token is presented whatever the date. Ten years or more count as no limit.
    private func expiration(of refreshToken: String?, replacing previous: AccessToken?) -> Date? {
        guard let refreshToken else { return nil }
        if let lifetime = members.refreshTokenLifetime {
            return .zero < lifetime && lifetime < .longest ? now.addingTimeInterval(lifetime / .seconds(1)) : nil
        }
        return previous.flatMap { $0.has(refreshToken: refreshToken) ? $0.refreshTokenExpiration : nil }
    }

    /// Returns the new refresh token of an otherwise unusable answer; `nil` if there is none.
    ///
    /// If there are several, returns the last one, as most parsers read a repeated name (RFC 8259 §4). A refusal with an error
    /// status issues no token.
    private func salvagedRefreshToken(for grant: Grant, read: String?) -> String? {
        guard (200..<300).contains(response.status) || read != nil else { return nil }
        let old = grant.refreshToken ?? ""
        return (read.map { [$0] } ?? members.refreshTokens).last { !$0.isEmpty && !$0.utf8.elementsEqual(old.utf8) }
    }
}

extension AccessToken {
    /// Whether its refresh token is this one, byte for byte.
    func has(refreshToken: String) -> Bool { self.refreshToken?.utf8.elementsEqual(refreshToken.utf8) ?? false }
}

extension ResponseReader {
    /// An error about this answer.
    func failure(_ problem: OAuthError.Problem) -> OAuthError {
        var failure = OAuthError(problem)
        failure.status = response.status
        failure.asked = asked
        failure.isOAuth = members["error"] != nil || members.value("access_token") != nil
        failure.retryAfter = RetryAfter.wait(in: response, now: now)
        return failure
    }

    /// An answer that isn't a token response; if it isn't JSON, the error names its content type.
    private func unreadable(_ problem: String) -> OAuthError { failure(.unreadableResponse(problem + kindOfAnswer)) }

    /// Returns the server's own error, as far as it can be read.
    ///
    /// A refusal without a known error code may be about the grant as well as about the client: Glewlwyd 2.7.5 refuses a used
    /// refresh token with an empty 400. Wrongly assuming a sign-out would be worse than trying again after the longest pause; a
    /// service treats such refusals as a refused grant only after three in a row and ten minutes.
    private func refusal(
        _ code: String?, _ description: String?, of grant: Grant?, replacing previous: AccessToken?
    ) -> OAuthError {
        var failure = failure(.refused)
        // A known code isn't secret, even if a secret contains it or is part of it.
        failure.error = code.map { Refusal.codes[$0] == nil ? safe($0) : $0 }
        failure.serverDescription = description.map(safe)
        // An error lives longer than an answer.
        let isKept = members.kind == .object && response.body.count <= 64 << 10 && !members.hasTokens
        failure.members = isKept ? members : nil
        // Compared as shown, so that callers find `invalid_grant` even if the server added a line break.
        let refusal = Refusal(
            code: failure.error, description: description, status: response.status, body: members.kind)
        failure.remedy = refusal.remedy(of: grant)
        failure.isPassing = failure.remedy == .retry && refusal.isPassing(for: grant)
        failure.isForeign = failure.remedy == .retry && refusal.isForeign(for: grant)
        failure.note = note(on: failure, of: grant, replacing: previous).map { "\($0.prefix(1).uppercased())\($0.dropFirst())." }
        return failure
    }

    /// Returns a fact that may explain a refusal, and that only this program knows.
    private func note(on failure: OAuthError, of grant: Grant?, replacing previous: AccessToken?) -> String? {
        let date = response.header("Date")
        if let proof, failure.error == "invalid_dpop_proof" { return ProofClock.note(issued: proof.proof.issued, date: date) }
        guard failure.remedy != .retry else { return nil }
        if let assertionTime, let note = ProofClock.note("the assertion was sent", issued: assertionTime, date: date) {
            return note
        }
        if asked?.hasEncodings == true, failure.error == "invalid_client" || response.status == 401 {
            return
                "the client's id or secret has characters that client_secret_basic encodes, which some servers don't undo: try "
                + "clientSecretPost, or withoutFormEncoding"
        }
        guard let previous, let refreshToken = grant?.refreshToken, previous.has(refreshToken: refreshToken),
            let end = previous.refreshTokenExpiration, end <= now
        else { return nil }
        return "by this machine's clock the refresh token expired at \(end.formatted(.iso8601))"
    }

    /// Returns a part of the answer, made safe to print: without what was sent, and without the credentials that the answer
    /// holds.
    private func safe(_ text: String) -> String {
        guard let credentials = SecretScanner.values(in: response.body) else { return "[hidden]" }
        let issued = members.secrets(isRefusal: !(200..<300).contains(response.status) || members.isRefusal)
        return ServerText.safe(text, hiding: secrets + issued + credentials)
    }

    /// The content type of an answer that isn't JSON, if it is a common one; a server may write anything into that header.
    private var kindOfAnswer: String {
        guard let type = response.header("Content-Type")?.lowercased(), !type.contains("json") else { return "" }
        let usual = ["text/html", "text/plain", "text/xml", "application/xml", "application/x-www-form-urlencoded"]
        let name = type.prefix { $0 != ";" }.trimming { $0 == " " }
        return " (its type is \(usual.contains(name) ? name : "not JSON"))"
    }
}
