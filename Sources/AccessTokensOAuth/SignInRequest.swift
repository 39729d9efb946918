import AccessTokens
import TokenServiceConcurrency
import AccessTokensHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// One sign-in with a browser: the URL to open, and the check of the callback.
///
/// ```swift
/// let request = try SignInRequest(client, authorizationURL: url, redirectURI: "com.example.app:/signed-in", scope: "api")
/// let callback = try await browser.open(request.url)  // yours
/// await tokens.replace(with: try await client.token(for: request.grant(from: callback)).token)
/// ```
///
/// A value for one sign-in: it creates its own code verifier (RFC 7636) and `state`, and accepts only a callback with that state.
/// No description or dump shows either.
///
/// Source: RFC 6749 §4.1; RFC 7636; RFC 9207.
public struct SignInRequest: Sendable {
    /// The URL to open in a browser.
    public private(set) var url: URL

    private let client: OAuthClient
    private let authorizationURL: URL
    /// The URL's parameters, without the client's id.
    private let form: Form
    private let redirectURI: String?
    private let requiresIssuer: Bool
    private let verifier: CodeVerifier
    private let state: String

    /// Creates a sign-in.
    ///
    /// - Parameters:
    ///   - client: The client that will present the code.
    ///   - authorizationURL: The authorization endpoint. Its query is kept, and may have none of the sign-in's parameters.
    ///   - redirectURI: Where the server redirects the browser after the sign-in; `nil` if the client has registered a single
    ///     one.
    ///   - scope: The scopes to ask for, separated by spaces.
    ///   - additionalParameters: More parameters, such as `resource`, `prompt` or `nonce`. They become part of the URL, so none
    ///     may be a secret.
    ///   - requiresIssuer: Whether a callback without `iss` is refused: for a server whose metadata says
    ///     `authorization_response_iss_parameter_supported` (RFC 9207 §2.4). The client must name its issuer then. If the client
    ///     names its issuer, an `iss` in the callback is always compared with it.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        _ client: OAuthClient, authorizationURL: URL, redirectURI: String? = nil, scope: String? = nil,
        additionalParameters: Form = [:], requiresIssuer: Bool = false
    ) throws {
        self.client = client
        self.redirectURI = redirectURI
        self.requiresIssuer = requiresIssuer
        verifier = CodeVerifier()
        state = Base64URL.random(bytes: 16)
        guard !requiresIssuer || client.issuer?.isEmpty == false else {
            throw OAuthError(.invalidConfiguration("requiresIssuer needs a client that names its issuer"))
        }
        let endpoint = try TokenEndpoint("authorization URL", authorizationURL)
        try endpoint.check(additional: additionalParameters)
        var form: Form = ["response_type": "code"]
        form.add("redirect_uri", ifAny: redirectURI)
        form.add("scope", ifAny: scope)
        form.add(["state": state, "code_challenge": verifier.challenge, "code_challenge_method": "S256"])
        try endpoint.check(form)
        // RFC 9449 §10: the code is useless without the key. Servers that don't support the parameter ignore it.
        form.add("dpop_jkt", ifAny: client.keyThumbprint)
        let own = Set(form.parameters.map(\.name)).union(["client_id", "request_uri"])
        guard additionalParameters.parameters.allSatisfy({ !$0.isSecret && !own.contains($0.name) }) else {
            throw OAuthError(.invalidConfiguration("an additional parameter is a secret or belongs to the sign-in"))
        }
        form.add(additionalParameters)
        self.form = form
        self.authorizationURL = authorizationURL
        url = try Self.url(authorizationURL, client, form)
    }

    private init(_ request: SignInRequest, url: URL) {
        self = request
        self.url = url
    }

    @inline(never) private static func url(_ authorizationURL: URL, _ client: OAuthClient, _ form: Form) throws(OAuthError) -> URL
    {
        let text = authorizationURL.absoluteString
        let query = FormEncoding.form([("client_id", client.id)] + form.parameters.map { ($0.name, $0.value) })
        let separator = authorizationURL.query == nil ? "?" : text.hasSuffix("?") || text.hasSuffix("&") ? "" : "&"
        guard let url = URL(string: text + separator + query) else {
            throw OAuthError(.invalidConfiguration("the authorization URL can't carry a query"))
        }
        return url
    }

    /// Sends the sign-in's parameters to the server, with one request, and returns a sign-in whose URL doesn't contain them.
    ///
    /// They can then be neither read nor changed in the browser. Some servers require it.
    ///
    /// - Parameter url: The pushed authorization request endpoint: `https`, or `http` to a loopback address.
    /// - Throws: ``OAuthError``, or `CancellationError` when its task is cancelled.
    ///
    /// Source: RFC 9126.
    @concurrent public func pushed(to url: URL) async throws -> SignInRequest {
        var client = client
        client.authentication = client.authentication.namingClient
        let reader = try await client.send(form, to: TokenEndpoint("pushed authorization request URL", url))
        guard let place = try reader.readableMembers()["request_uri"] else {
            throw reader.failure(.unreadableResponse("request_uri is missing or has an invalid value"))
        }
        return SignInRequest(self, url: try Self.url(authorizationURL, client, ["request_uri": place]))
    }

    /// Returns the grant from a callback.
    ///
    /// The callback's address isn't compared with the redirect URI: loopback listeners see only its path, and systems rewrite it.
    /// The state, which no other sign-in has, and the code verifier bind it to this sign-in, and the issuer, if the server names
    /// it, to this server.
    ///
    /// - Parameter callback: The URL that the server sent the browser to.
    /// - Throws: ``OAuthError`` with the code `callbackMismatch` if the callback belongs to another sign-in or another server
    ///   (then ignore it), or with the code `refused` if the server or the user has refused. The remedy is then `signIn` only if
    ///   the user can do something about it, as with `access_denied`: another attempt is the user's decision. It is
    ///   `clientRegistration` for a mistake in the request or in the registration, and `retry` for trouble of the server.
    public func grant(from callback: URL) throws -> Grant {
        let parameters = Self.parameters(of: callback)
        func value(_ name: String) throws(OAuthError) -> String? {
            let values = parameters.filter { $0.name == name }.map(\.value)
            guard values.count < 2 else { throw OAuthError(.callbackMismatch("'\(name)' is repeated")) }
            return values.first.flatMap { $0.isEmpty ? nil : $0 }
        }
        guard try value("state") == state else { throw OAuthError(.callbackMismatch("its state differs")) }
        let issuer = try value("iss")
        // RFC 9207 §2.4: compared as strings.
        if let expected = client.issuer, let issuer, issuer != expected {
            throw OAuthError(.callbackMismatch("it comes from another authorization server"))
        }
        guard issuer != nil || !requiresIssuer else { throw OAuthError(.callbackMismatch("it has no issuer (iss)")) }
        if let error = try value("error") {
            let secrets = [state, verifier.value] + parameters.filter { Self.secretNames.contains($0.name) }.map(\.value)
            var failure = OAuthError(.signInRefused)
            failure.error = ServerText.safe(error, hiding: secrets)
            failure.serverDescription = try value("error_description").map { ServerText.safe($0, hiding: secrets) }
            failure.asked = client.asked(of: authorizationURL)
            failure.remedy = Refusal.remedyOfSignIn(failure.error)
            throw failure
        }
        guard let code = try value("code") else { throw OAuthError(.callbackMismatch("it has no code")) }
        return .authorizationCode(code, verifier: verifier.value, redirectURI: redirectURI)
    }

    /// The secret parameters of a callback, even one with an error.
    private static let secretNames: Set<String> = ["code", "access_token", "id_token", "refresh_token"]

    /// Returns the parameters of a callback's query, which is form-encoded (RFC 6749 §4.1.2).
    private static func parameters(of callback: URL) -> [(name: String, value: String)] {
        let query = URLComponents(url: callback, resolvingAgainstBaseURL: true)?.percentEncodedQuery ?? ""
        return query.split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (FormEncoding.decode(parts[0]), parts.count == 2 ? FormEncoding.decode(parts[1]) : "")
        }
    }
}

extension SignInRequest: Redacted {
    /// The client and the server; neither the state nor the verifier.
    package var text: String {
        "SignInRequest(client \(ServerText.line(client.id)) at \(url.host(percentEncoded: true) ?? "nowhere"))"
    }
}
