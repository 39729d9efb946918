public import AccessTokens
public import TokenServiceConcurrency

/// The credential that a client presents to get a token.
///
/// ```swift
/// var grant = Grant.jwtBearer(assertion, scope: "api.read")
/// grant.form.add("resource", "https://api.example")
/// ```
///
/// The grants here are those of the specifications; ``init(type:_:isRepeatable:remedyWhenRefused:)`` makes any other.
///
/// Source: RFC 6749 §1.3, §4.5.
public struct Grant: Sendable {
    /// The value of `grant_type`.
    package let type: String

    /// The other parameters, without those of the client's authentication.
    public var form: Form

    /// Whether presenting it twice is harmless; not so for a code or a refresh token, which is good for one use.
    public var isRepeatable: Bool

    /// How to recover when the server refuses this grant, with `invalid_grant` or with another code that means the same.
    ///
    /// `signIn` for a user's grant, such as a code; `clientRegistration` for the program's own, such as an assertion: it is
    /// retried with the longest pause, so that a program recovers once the next assertion is valid. Change it for an exchange of
    /// a user's token. A refusal of a user's grant with a code that isn't known is unclear (`signInOrRegistration`).
    public var remedyWhenRefused: TokenServiceError.Remedy

    /// Creates a grant of any type.
    ///
    /// - Parameters:
    ///   - type: The value of `grant_type`.
    ///   - form: The other parameters, without those of the client's authentication.
    ///   - isRepeatable: Whether presenting it twice is harmless.
    ///   - remedyWhenRefused: How to recover when the server refuses it; see ``remedyWhenRefused``.
    public init(
        type: String, _ form: Form = [:], isRepeatable: Bool = false,
        remedyWhenRefused: TokenServiceError.Remedy = .signIn
    ) {
        self.type = type
        self.form = form
        self.isRepeatable = isRepeatable
        self.remedyWhenRefused = remedyWhenRefused
    }

    /// The client's own credentials, for a program that acts on its own behalf (RFC 6749 §4.4).
    public static func clientCredentials(scope: String? = nil) -> Grant {
        Grant(type: "client_credentials", isRepeatable: true, remedyWhenRefused: .clientRegistration).adding(scope: scope)
    }

    /// A refresh token (RFC 6749 §6).
    ///
    /// - Parameters:
    ///   - token: The refresh token.
    ///   - scope: The scopes to ask for, if fewer than were granted; `nil`: all of them.
    public static func refreshToken(_ token: String, scope: String? = nil) -> Grant {
        Grant(type: refreshType, ["refresh_token": token]).adding(scope: scope)
    }

    /// The code from a sign-in (RFC 6749 §4.1.3; RFC 7636 §4.5).
    ///
    /// ``SignInRequest/grant(from:)`` creates it after checking the callback.
    ///
    /// - Parameters:
    ///   - code: The code, good for one use.
    ///   - verifier: The code verifier whose challenge the sign-in began with; `nil` if it began without one.
    ///   - redirectURI: The redirect URI that the sign-in began with, just as it was sent; `nil` if none was.
    public static func authorizationCode(_ code: String, verifier: String?, redirectURI: String? = nil) -> Grant {
        var form: Form = ["code": code]
        form.add("redirect_uri", ifAny: redirectURI)
        form.add("code_verifier", ifAny: verifier)
        return Grant(type: codeType, form)
    }

    /// A token to be exchanged for another (RFC 8693 §2.1).
    ///
    /// - Parameters:
    ///   - subject: The token of the party on whose behalf the request is made.
    ///   - type: The type of that token.
    ///   - actor: The token of the acting party, with its type; `nil` if the subject acts itself.
    ///   - requestedType: The type of token to request; `nil`: the server decides. For a token that isn't an access token the
    ///     answer has the type `N_A` (§2.2.1): add it to the client's `acceptedTokenTypes`.
    ///   - audience: The names of the services where the token is to be used.
    ///   - resource: Their URIs.
    ///   - scope: The scopes to ask for.
    public static func tokenExchange(
        subject: String, type: TokenType, actor: (token: String, type: TokenType)? = nil, requestedType: TokenType? = nil,
        audience: [String] = [], resource: [String] = [], scope: String? = nil
    ) -> Grant {
        var form: Form = [:]
        for resource in resource { form.add("resource", resource) }
        for audience in audience { form.add("audience", audience) }
        form.add("scope", ifAny: scope)
        form.add("requested_token_type", ifAny: requestedType?.uri)
        form.add("subject_token", subject)
        form.add("subject_token_type", type.uri)
        if let actor {
            form.add("actor_token", actor.token)
            form.add("actor_token_type", actor.type.uri)
        }
        return Grant(
            type: exchangeType, form, isRepeatable: true,
            remedyWhenRefused: .clientRegistration)
    }

    /// An assertion about the subject of the token (RFC 7523 §2.1).
    public static func jwtBearer(_ assertion: String, scope: String? = nil) -> Grant {
        Grant(
            type: "urn:ietf:params:oauth:grant-type:jwt-bearer", ["assertion": assertion], isRepeatable: true,
            remedyWhenRefused: .clientRegistration
        ).adding(scope: scope)
    }

    static let refreshType = "refresh_token"
    static let codeType = "authorization_code"
    static let exchangeType = "urn:ietf:params:oauth:grant-type:token-exchange"
    static let deviceType = "urn:ietf:params:oauth:grant-type:device_code"

    /// The refresh token that is presented, which stays valid unless the answer has a new one.
    var refreshToken: String? { type == Self.refreshType ? form["refresh_token"] : nil }

    /// Error codes that ask a device to wait (RFC 8628 §3.5).
    static let pausesOfDevices: Set<String> = ["authorization_pending", "slow_down"]

    private func adding(scope: String?) -> Grant {
        var grant = self
        grant.form.add("scope", ifAny: scope)
        return grant
    }
}

extension Grant: Redacted {
    /// How many parameters it has; no names and no values.
    package var text: String { "Grant(\(form.parameters.count) parameters)" }
}

/// The type of a token in an exchange.
///
/// Source: RFC 8693 §3.
public struct TokenType: Sendable, Hashable, Described {
    /// The type's URI.
    package let uri: String

    /// Creates a type of any URI.
    public init(uri: String) {
        self.uri = uri
    }

    /// An OAuth 2.0 access token.
    public static let accessToken = TokenType(uri: "urn:ietf:params:oauth:token-type:access_token")
    /// An OAuth 2.0 refresh token.
    public static let refreshToken = TokenType(uri: "urn:ietf:params:oauth:token-type:refresh_token")
    /// An ID token of OpenID Connect.
    public static let idToken = TokenType(uri: "urn:ietf:params:oauth:token-type:id_token")
    /// Any JSON Web Token, such as a platform's token for a workload.
    public static let jwt = TokenType(uri: "urn:ietf:params:oauth:token-type:jwt")
    /// A SAML 2.0 assertion.
    public static let saml2 = TokenType(uri: "urn:ietf:params:oauth:token-type:saml2")

    package var text: String { uri }
}
