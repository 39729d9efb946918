public import AccessTokens
public import AccessTokensHTTP
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A client of an authorization server: sends forms and reads the answers.
///
/// ```swift
/// let client = try OAuthClient(id: "reports", authentication: .clientSecretBasic { try await vault.secret() }, tokenURL: url)
/// let answer = try await client.token(for: .tokenExchange(subject: token, type: .accessToken))
/// ```
///
/// A value without state: concurrent calls are independent requests. Each call sends one request, never redirected, and never
/// repeated, with one exception: a client with a `proof` sends a form once more if the server definitely answers that it has only
/// checked the proof and requires another nonce in it (`use_dpop_nonce`, RFC 9449 §8). Neither the client nor its errors show a
/// secret, whether the client's own or one in a form or an answer.
///
/// For a `TokenService`, use a loader with it: ``ClientCredentialsLoader``, ``RefreshTokenLoader``, or ``GrantLoader`` for any
/// other grant.
///
/// Source: RFC 6749 §2, §3.2.
public struct OAuthClient: Sendable {
    /// The client's id.
    package let id: String

    /// The authorization server's identifier, as its metadata has it; `nil` if unknown.
    package let issuer: String?

    /// How the client authenticates.
    package internal(set) var authentication: ClientAuthentication

    /// Whether the server has registered the client at its own request, and may forget it.
    package var isRegistered = false

    let endpoint: TokenEndpoint
    let acceptedTokenTypes: Set<String>
    let proof: (any TokenProof)?
    let lifetimeWhenMissing: Duration?
    let keptMembers: Set<String>, shownMembers: Set<String>
    let additionalHeaders: [String: String]
    let additionalParameters: Form
    let transport: any TokenTransport
    let timeLimit: Duration
    let wallClock: @Sendable () -> Date
    let reading: @Sendable (ResponseMembers, Int) -> ResponseReading

    /// Creates a client, after checking everything that can be checked without the server.
    ///
    /// - Parameters:
    ///   - id: The client's id.
    ///   - authentication: How the client authenticates. Source: RFC 6749 §2.3.
    ///   - tokenURL: The token endpoint: `https`, or `http` to a loopback address. Its query is kept. Source: RFC 6749 §3.2.
    ///   - issuer: The authorization server's identifier: the audience of client assertions (``ClientAuthentication``), also
    ///     compared with the issuer in a sign-in's callback (RFC 9207). It is never guessed from a URL.
    ///   - acceptedTokenTypes: The types of tokens that the program can use, compared without case; `nil`: `DPoP` if there is a
    ///     `proof`, else `Bearer`. A name that has no meaning of its own, such as `BearerToken`, is another one for `Bearer`. An
    ///     answer without a type has a bearer token, unless there is a `proof`. Source: RFC 6749 §7.1.
    ///   - lifetimeWhenMissing: The lifetime of a token if the answer gives none that is longer than zero; `nil`: until it is
    ///     invalidated. A load every five minutes costs little. A token that is kept without a limit is eventually refused, and
    ///     only callers that call `invalidate` recover from that. Source: RFC 6749 §5.1 (`expires_in` is only recommended).
    ///   - keptMembers: The names of other members of an answer, texts or numbers, that are kept as `AccessToken.members`, such as
    ///     `id_token` or `instance_url`. After a refresh, those that the answer doesn't have stay as they were.
    ///   - shownMembers: The names of those kept members that aren't secret, so that a token's description shows them, as long as
    ///     the token hasn't been stored.
    ///   - proof: The key that the tokens are to be bound to, such as a `DPoPKey`; `nil` for bearer tokens.
    ///   - additionalHeaders: More headers of each request, such as `User-Agent`. No text shows their values.
    ///   - additionalParameters: More parameters of each token request, such as a tenant.
    ///   - transport: Carries the requests.
    ///   - timeLimit: How long one request may take altogether, 20 s unless said otherwise: below `RefreshPolicy(loadTimeout:)`,
    ///     so that a load fails with the actual reason. Clamped to 0.1 s through one hour.
    ///   - wallClock: The time, for the expiration of refresh tokens, and for a `Retry-After` with a date in an answer without one.
    ///   - reading: Says what the answer to a grant means, for a server that deviates: called with the members of each answer that
    ///     has some, and its status, on any thread. See ``ResponseReading``.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        id: String,
        authentication: ClientAuthentication = .publicClient,
        tokenURL: URL,
        issuer: String? = nil,
        acceptedTokenTypes: Set<String>? = nil,
        lifetimeWhenMissing: Duration? = .seconds(300),
        keeping keptMembers: Set<String> = [],
        showing shownMembers: Set<String> = [],
        proof: (any TokenProof)? = nil,
        additionalHeaders: [String: String] = [:],
        additionalParameters: Form = [:],
        transport: any TokenTransport = URLSessionTransport(),
        timeLimit: Duration = .seconds(20),
        wallClock: @escaping @Sendable () -> Date = { Date() },
        reading: @escaping @Sendable (_ members: ResponseMembers, _ status: Int) -> ResponseReading = { _, _ in .asUsual }
    ) throws {
        self.id = id
        self.issuer = issuer
        self.authentication = authentication
        self.acceptedTokenTypes = acceptedTokenTypes ?? [proof == nil ? "Bearer" : "DPoP"]
        self.proof = proof
        self.lifetimeWhenMissing = lifetimeWhenMissing
        self.keptMembers = keptMembers
        self.shownMembers = shownMembers
        self.transport = transport
        self.timeLimit = timeLimit
        self.wallClock = wallClock
        self.reading = reading
        self.additionalHeaders = additionalHeaders
        self.additionalParameters = additionalParameters
        endpoint = try TokenEndpoint("token URL", tokenURL)
        try check(additional: [:])
        let problem =
            id.isEmpty ? "the client id is empty" : authentication.problem(issuer: issuer) ?? Self.problem(in: additionalHeaders)
        if let problem { throw OAuthError(.invalidConfiguration(problem)) }
    }

    /// Returns what is wrong with the program's headers; `nil` if nothing is.
    private static func problem(in headers: [String: String]) -> String? {
        var names: Set<String> = ["authorization", "content-type", "content-length", "host", "dpop", "transfer-encoding"]
        for (name, value) in headers {
            guard HTTPToken.isValid(name), value.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
                return "the additional header '\(ServerText.line(name))' has a character that HTTP doesn't allow"
            }
            guard names.insert(name.lowercased()).inserted else {
                return "the additional header '\(name)' is repeated, or belongs to the client"
            }
        }
        return nil
    }

    /// Gets a token for a grant, with one request.
    ///
    /// - Parameters:
    ///   - grant: The grant to present.
    ///   - previous: The token to replace, which no text shows; a refresh keeps its scope.
    /// - Returns: The token with the other members of the answer. After a refresh the token has the refresh token for the next
    ///   one, also when the server sent no new one (RFC 6749 §6).
    /// - Throws: ``OAuthError``; a `SalvagedGrant` with the ``OAuthError`` inside if a non-repeatable grant was spent, and the
    ///   answer has a refresh token but is otherwise unusable; or `CancellationError` when its task is cancelled.
    @concurrent public func token(for grant: Grant, replacing previous: AccessToken? = nil) async throws -> TokenResponse {
        try await send(grant.form, of: grant, to: endpoint, replacing: previous).token(for: grant, replacing: previous)
    }

    /// Sends a form to another endpoint of the same server, with one request, and returns the answer's members.
    ///
    /// For introspection, pushed authorization requests and the like; for revocation see ``revoke(_:at:)``.
    ///
    /// - Parameters:
    ///   - form: The parameters, without the client's own.
    ///   - url: The endpoint: `https`, or `http` to a loopback address. Its query is kept.
    /// - Throws: ``OAuthError``, also if the answer isn't a JSON object, or `CancellationError` when its task is cancelled.
    @concurrent public func members(for form: Form, at url: URL) async throws -> ResponseMembers {
        try await send(form, to: TokenEndpoint("endpoint's URL", url)).readableMembers()
    }

    /// Sends a form and returns a reader of the answer: the only place where requests are made.
    ///
    /// A grant may be good for one use. It is sent again, once and with the new nonce, only if the server has definitely refused
    /// the proof because of its nonce, before checking anything else. After any other answer, or none, the grant may have been
    /// spent.
    @inline(never) func send(
        _ form: Form, of grant: Grant? = nil, to endpoint: TokenEndpoint, replacing previous: AccessToken? = nil
    ) async throws -> ResponseReader {
        var form = form
        if grant != nil { form.add(additionalParameters) }
        try endpoint.check(form)
        try requireKey(of: grant, replacing: previous)
        let answer = try await sendOnce(form, of: grant, to: endpoint, replacing: previous, nonce: nil)
        guard let nonce = try answer.nonceForAnotherProof() else { return answer }
        // The user may have signed out meanwhile.
        try Task.checkCancellation()
        let second = try await sendOnce(
            form, of: grant, to: endpoint, replacing: previous, nonce: nonce,
            hiding: answer.secrets)
        _ = try second.nonceForAnotherProof(isSecond: true)
        return second
    }

    /// Throws unless a loader can add the parameters to the client's own.
    func check(additional form: Form) throws(OAuthError) {
        var whole = additionalParameters
        whole.add(form)
        try endpoint.check(additional: whole)
    }

    /// Throws if the grant is a refresh token that only another key can present (RFC 9449 §5).
    ///
    /// The refresh tokens of a client with credentials are bound to the credentials, not to the key.
    private func requireKey(of grant: Grant?, replacing previous: AccessToken?) throws(OAuthError) {
        guard let previous, let refreshToken = grant?.refreshToken, previous.has(refreshToken: refreshToken),
            authentication.isPublic, let bound = previous.keyThumbprint, bound != keyThumbprint
        else { return }
        throw OAuthError(.boundToAnotherKey)
    }

    @inline(never) private func sendOnce(
        _ form: Form, of grant: Grant?, to endpoint: TokenEndpoint, replacing previous: AccessToken?,
        nonce: String?, hiding earlier: [String] = []
    ) async throws -> ResponseReader {
        let credentials = try await authentication.credentials(id: id, issuer: issuer)
        var proof: RequestProof?
        // Read before the proof is made, in case the program changes its key meanwhile.
        let keyThumbprint = keyThumbprint
        if let maker = self.proof {
            proof = try await beforeSending("the proof") {
                try await maker.proof(method: "POST", url: endpoint.url, accessToken: nil, nonce: nonce)
            }
        }
        var secrets =
            earlier + form.secrets + credentials.form.secrets + credentials.secrets
            + [previous?.value, previous?.refreshToken].compactMap { $0 }
        secrets += (proof?.secrets ?? []) + additionalHeaders.values
        var headers = ["Content-Type": "application/x-www-form-urlencoded"]
        if additionalHeaders.header("Accept") == nil { headers["Accept"] = "application/json" }
        headers.merge(additionalHeaders) { $1 }
        headers.merge(credentials.headers) { $1 }
        headers.merge(proof?.headers ?? [:]) { $1 }
        var parameters: Form = grant.map { ["grant_type": $0.type] } ?? [:]
        parameters.add(form)
        parameters.add(credentials.form)
        let request = TransportRequest(
            url: endpoint.url, headers: headers,
            body: Data(FormEncoding.form(parameters.parameters.map { ($0.name, $0.value) }).utf8), timeLimit: timeLimit,
            maximumBodySize: ResponseMembers.maximumSize)
        let assertionTime =
            authentication.assertionTime(wallClock) ?? grant.flatMap { $0.form["assertion"] == nil ? nil : wallClock() }
        var asked = asked(of: endpoint.url)
        asked.hasEncodings = credentials.hasEncodings
        try LoadTime.check()
        let response = try await transport.answer(to: request, hiding: secrets, asking: asked)
        var answered: ResponseReader.Answered?
        if let maker = self.proof, let proof, let keyThumbprint {
            // An invalid nonce matters only if the server demands one.
            let nonce = Result { try maker.nonce(in: response.headers, from: endpoint.url) }
            answered = ResponseReader.Answered(proof: proof, keyThumbprint: keyThumbprint, nonce: nonce)
        }
        return ResponseReader(
            response: response, asked: asked, secrets: secrets, acceptedTokenTypes: acceptedTokenTypes,
            lifetimeWhenMissing: lifetimeWhenMissing, keptMembers: keptMembers, shownMembers: shownMembers,
            reading: reading, proof: answered, assertionTime: assertionTime, now: wallClock())
    }
}

extension OAuthClient: Redacted {
    /// The client's id and the server's host; not the secret.
    package var text: String { "OAuthClient(\(place))" }

    /// The client and the place that it asks, for an error.
    func asked(of url: URL) -> OAuthError.Asked {
        OAuthError.Asked(url, client: id, isRegistered: isRegistered, method: authentication.description)
    }

    /// The thumbprint of the key that the client's tokens are bound to.
    var keyThumbprint: String? { proof?.keyThumbprint }

    /// The client and its server, for texts.
    var place: String { "client \(ServerText.line(id)) at \(endpoint.url.host(percentEncoded: true) ?? "nowhere")" }
}

extension OAuthClient {
    /// Sends a request for a registration, once, and returns the answer's members (RFC 7591 §3).
    package static func answer(
        toRegistration request: TransportRequest, hiding secrets: [String], by transport: any TokenTransport
    ) async throws -> ResponseMembers {
        let asked = OAuthError.Asked(request.url)
        do {
            let response = try await transport.answer(to: request, hiding: secrets, asking: asked)
            return try ResponseReader(
                response: response, asked: asked, secrets: secrets, acceptedTokenTypes: [], lifetimeWhenMissing: nil, now: Date()
            ).readableMembers()
        } catch let error as OAuthError {
            throw error.ofRegistration
        }
    }
}

/// Runs program code that creates a part of a request; if it fails, nothing has been sent.
///
/// An error with a remedy is thrown unchanged. Of any other error only the type is shown, since its text may contain a secret.
func beforeSending<Value>(_ what: String, _ make: () async throws -> Value) async throws -> Value {
    do {
        return try await make()
    } catch {
        if error is any TokenLoadFailure || error is NotSent { throw error }
        if error is CancellationError || Task.isCancelled { throw CancellationError() }
        var failure = OAuthError(.credentialsUnavailable("\(what) failed with an error of type \(type(of: error))"))
        failure.underlying = error
        throw failure
    }
}

extension OAuthClient {
    /// Asks the server whether a token is active, with one request.
    ///
    /// - Parameters:
    ///   - token: An access token or a refresh token, also one that another client has presented.
    ///   - url: The introspection endpoint: `https`, or `http` to a loopback address.
    ///   - hint: The type of the token, such as `refresh_token`; `nil`: the server finds out.
    /// - Returns: The members of the answer, such as `scope` and `sub`; `nil` if the token isn't active.
    /// - Throws: ``OAuthError``, or `CancellationError` when its task is cancelled.
    ///
    /// Source: RFC 7662.
    @concurrent public func introspect(_ token: String, at url: URL, hint: String? = nil) async throws -> ResponseMembers? {
        var form: Form = ["token": token]
        form.add("token_type_hint", ifAny: hint)
        let reader = try await send(form, to: TokenEndpoint("introspection URL", url))
        let members = try reader.readableMembers()
        guard case .bool(let isActive)? = members.value("active") else {
            throw reader.failure(.unreadableResponse("active must be true or false"))
        }
        return isActive ? members : nil
    }

    /// Tells the server that a token is no longer needed, with one request: the last step of a sign-out.
    ///
    /// ```swift
    /// for token in await tokens.reset().discarded { try await client.revoke(token, at: revocationURL) }
    /// ```
    ///
    /// Revokes the grant of the token: its refresh token, or the access token if it has none. Most servers end the grant's
    /// access tokens with its refresh token; some let them expire (RFC 7009 §2.1 only recommends the former). Returns when the
    /// server has answered that the token is invalid, which it also does for an unknown token. When it throws, the token may
    /// still be valid; ``OAuthError/retryAfter`` is the server's wish for when to try again, if any. Trying again is the
    /// caller's choice, and harmless.
    ///
    /// - Parameters:
    ///   - token: A token that was issued to this client: one that `TokenService.reset()` returned, or that its `onDiscard` was
    ///     called with.
    ///   - url: The revocation endpoint: `https`, or `http` to a loopback address. Its query is kept. Source: RFC 7009 §2.
    /// - Throws: ``OAuthError``, or `CancellationError` when its task is cancelled.
    ///
    /// Source: RFC 7009 §2.1, §2.2.
    @concurrent public func revoke(_ token: AccessToken, at url: URL) async throws {
        let endpoint = try TokenEndpoint("revocation URL", url)
        var revoked = token.value
        var hint = "access_token"
        if let refreshToken = token.refreshToken, !refreshToken.isEmpty { (revoked, hint) = (refreshToken, "refresh_token") }
        // Nothing to revoke, and an empty parameter would be an invalid request.
        guard !revoked.isEmpty else { return }
        try await send(["token": revoked, "token_type_hint": hint], to: endpoint, replacing: token)
            .requireSuccess(isBodyIgnored: true)
    }
}
