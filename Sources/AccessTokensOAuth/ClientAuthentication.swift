import AccessTokensHTTP
public import TokenServiceConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How a client authenticates to the authorization server: one method per request, never in the URL.
///
/// A secret or an assertion may come from a closure, which is called for each request, maybe concurrently, so that a secret can
/// be replaced while the program runs. An error that it throws ends the load before anything is sent.
///
/// Source: RFC 6749 §2.3; the names are those of the IANA registry "OAuth Token Endpoint Authentication Methods".
public struct ClientAuthentication: Sendable, Described {
    private enum Method: Sendable {
        case none, basic, post, idAlone, assertion
    }

    /// The method's registered name.
    package let text: String

    private let method: Method
    /// The secret or the assertion; its parameters are the client's id and the server's issuer.
    private let make: @Sendable @concurrent (String, String) async throws -> String
    private let problem: String?
    /// Whether the closure needs the issuer.
    private let needsIssuer: Bool
    /// The clock that dates the assertions; `nil`: the client's.
    private var clock: (@Sendable () -> Date)?
    private var isNamed = false
    private var isFormEncoded = true

    private init(
        _ description: String, _ method: Method, problem: String? = nil, needsIssuer: Bool = false,
        make: @escaping @Sendable @concurrent (String, String) async throws -> String = { _, _ in "" }
    ) {
        text = description
        self.method = method
        self.problem = problem
        self.needsIssuer = needsIssuer
        self.make = make
    }

    /// In the `Authorization` header, the method that every server with client passwords must support.
    ///
    /// Client id and secret are form-encoded separately, then joined and encoded in Base64. A space becomes `%20`, which all
    /// servers that undo the inner encoding understand; some keep a plus as a plus. Some servers forget to undo it, and refuse
    /// secrets with other characters than letters, digits and `*-._`: use ``clientSecretPost(_:)-(String)`` with those, or
    /// ``withoutFormEncoding``.
    ///
    /// Source: RFC 6749 §2.3.1.
    public static func clientSecretBasic(_ secret: String) -> ClientAuthentication {
        ClientAuthentication("client_secret_basic", .basic, problem: problem(of: secret)) { _, _ in secret }
    }

    /// In the `Authorization` header, with a secret that a closure returns for each request.
    public static func clientSecretBasic(
        _ secret: @escaping @Sendable @concurrent () async throws -> String
    ) -> ClientAuthentication {
        ClientAuthentication("client_secret_basic", .basic) { _, _ in try await secret() }
    }

    /// In the form, together with the other parameters.
    ///
    /// Source: RFC 6749 §2.3.1.
    public static func clientSecretPost(_ secret: String) -> ClientAuthentication {
        ClientAuthentication("client_secret_post", .post, problem: problem(of: secret)) { _, _ in secret }
    }

    /// In the form, with a secret that a closure returns for each request.
    public static func clientSecretPost(
        _ secret: @escaping @Sendable @concurrent () async throws -> String
    ) -> ClientAuthentication {
        ClientAuthentication("client_secret_post", .post) { _, _ in try await secret() }
    }

    /// Only by its id in the form: a public client, such as an app, which can't keep a secret.
    ///
    /// Source: RFC 6749 §2.1, §3.2.1.
    public static let publicClient = ClientAuthentication("none", .idAlone)

    /// No identification, not even the client's id: for an STS that relies on the subject token alone.
    ///
    /// Google's is one. Source: RFC 8693 §2.1.
    public static let unidentified = ClientAuthentication("unidentified", .none)

    /// By the certificate that the transport presents; the form contains only the client's id.
    ///
    /// `URLSessionTransport` presents none: take a transport of the program's own that does. Source: RFC 8705 §2.
    public static let mutualTLS = ClientAuthentication("tls_client_auth", .idAlone)

    /// By an assertion that the program itself creates for each request; the client needs an `issuer`.
    ///
    /// For an assertion that ``privateKeyJWT(algorithm:keyID:audience:wallClock:sign:)`` can't make, such as one with other claims.
    ///
    /// - Parameter make: Receives the client's id and the issuer, which is the assertion's audience.
    ///
    /// Source: RFC 7523 §2.2.
    public static func assertion(
        _ make: @escaping @Sendable @concurrent (_ clientID: String, _ audience: String) async throws -> String
    ) -> ClientAuthentication {
        privateKey(needsIssuer: true, make)
    }

    /// By an assertion that another program has created, such as a platform's token in a file (workload identity).
    ///
    /// ``Credential/read()`` is such a closure.
    ///
    /// Source: RFC 7523 §2.2.
    public static func assertion(
        _ read: @escaping @Sendable @concurrent () async throws -> String
    ) -> ClientAuthentication {
        privateKey(needsIssuer: false) { _, _ in try await read() }
    }

    static func privateKey(
        needsIssuer: Bool, problem: String? = nil, clock: (@Sendable () -> Date)? = nil,
        _ make: @escaping @Sendable @concurrent (String, String) async throws -> String
    ) -> ClientAuthentication {
        var authentication = ClientAuthentication(
            "private_key_jwt", .assertion, problem: problem, needsIssuer: needsIssuer, make: make)
        authentication.clock = clock
        return authentication
    }

    /// The same with the client's id in the form, even if a header has it, for servers that expect it there.
    ///
    /// MCP's Python server does; pushed sign-ins always have it (RFC 9126 §2.1). Source: RFC 6749 §3.2.1.
    public var namingClient: ClientAuthentication {
        var named = self
        named.isNamed = true
        return named
    }

    /// The same without the form encoding of id and secret in the header, for servers that don't undo it.
    ///
    /// So RFC 7617 has it. Most servers with that mistake accept ``clientSecretPost(_:)-(String)``, which needs no such choice.
    public var withoutFormEncoding: ClientAuthentication {
        var plain = self
        plain.isFormEncoded = false
        return plain
    }

    /// Whether the client doesn't prove its identity, so that anyone could send its requests.
    var isPublic: Bool { method == .none || description == Self.publicClient.description }

    /// Whether a server that supports the method lists it by this name.
    ///
    /// Mutual TLS has two names, and only the transport knows which one applies. Many servers with public clients, Keycloak and
    /// Glewlwyd among them, don't list `none`.
    package var isListed: Bool { method != .none && method != .idAlone }

    /// Why the client can't be authenticated; `nil` if no problem is known yet.
    func problem(issuer: String?) -> String? {
        if let problem { return problem }
        return needsIssuer && issuer?.isEmpty ?? true ? "an assertion needs the client's issuer as its audience" : nil
    }

    private static func problem(of secret: String) -> String? {
        secret.isEmpty ? "the client secret is empty" : StrayCharacter.problem(in: secret).map { "the client secret \($0)" }
    }

    /// Returns the time of an assertion that is sent now, for comparison with the server's; `nil` if the client sends none.
    func assertionTime(_ wallClock: @Sendable () -> Date) -> Date? {
        method == .assertion ? clock?() ?? wallClock() : nil
    }

    /// Returns what to add to a request.
    func credentials(id: String, issuer: String?) async throws -> Credentials {
        if method == .none { return isNamed ? Credentials(form: ["client_id": id]) : Credentials() }
        guard method != .idAlone else { return Credentials(form: ["client_id": id]) }
        let secret = try await beforeSending("the client's secret or assertion") { try await make(id, issuer ?? "") }
        if let problem = secret.isEmpty ? "is empty" : StrayCharacter.problem(in: secret) {
            throw OAuthError(.credentialsUnavailable("the client's secret or assertion \(problem)"))
        }
        switch method {
        case .basic: return Credentials(basic: id, secret, isEncoded: isFormEncoded, form: isNamed ? ["client_id": id] : [:])
        case .post:
            return Credentials(form: ["client_id": id, "client_secret": secret], secrets: Credentials.spellings(id, secret))
        default:
            let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            return Credentials(form: ["client_id": id, "client_assertion_type": type, "client_assertion": secret])
        }
    }

    /// The authentication of one request.
    struct Credentials {
        var headers: [String: String] = [:]
        var form: Form = [:]
        /// Texts that must not be shown, in addition to the form's secrets.
        var secrets: [String] = []
        /// Whether the header has characters that a server must decode before it compares them.
        var hasEncodings = false
    }
}

/// A character that doesn't show, or looks like nothing, and that no credential has at that place.
enum StrayCharacter {
    /// Returns what is wrong with a text, and where; `nil` if nothing is.
    ///
    /// No line break and no NUL may be anywhere; no blank, tab or invisible character, such as a byte order mark, at either end.
    /// Files written by an editor or `echo` end with a line break. Spreadsheets, exports and selections with the mouse add others.
    ///
    /// Source: RFC 6749 App. A.2; a blank at an end, which it allows, is more often a mistake.
    static func problem(in text: String) -> String? {
        let scalars = text.unicodeScalars
        let end = scalars.reversed().drop { isStray($0) }.count, start = scalars.prefix { isStray($0) }.count
        for (index, scalar) in scalars.enumerated() {
            let isAtEnd = index < start || index >= end
            guard isAtEnd || isForbidden(scalar) else { continue }
            return "has \(name(scalar)) at position \(index + 1)"
        }
        return nil
    }

    private static func isForbidden(_ scalar: Unicode.Scalar) -> Bool { scalar.value == 0 || Character(scalar).isNewline }

    private static func isStray(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || !ServerText.isVisible(scalar)
    }

    private static func name(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\0": "a NUL"
        case "\t": "a tab"
        case "\u{FEFF}": "a byte order mark"
        case _ where Character(scalar).isNewline: "a line break"
        case _ where scalar.properties.isWhitespace: "a blank"
        default: "an invisible character"
        }
    }
}

extension ClientAuthentication.Credentials {
    /// Source: RFC 6749 §2.3.1, RFC 7617 §2.
    fileprivate init(basic id: String, _ secret: String, isEncoded: Bool, form: Form) {
        self.form = form
        secrets = Self.spellings(id, secret)
        // Each plus is a space: a plus itself is encoded.
        let userPass = isEncoded ? Self.formEncoded(id, secret).replacing("+", with: "%20") : "\(id):\(secret)"
        hasEncodings = userPass != "\(id):\(secret)"
        headers = ["Authorization": "Basic \(Data(userPass.utf8).base64EncodedString())"]
    }

    /// Returns the secret and the header's joined credentials, as we encode them and as others may.
    fileprivate static func spellings(_ id: String, _ secret: String) -> [String] {
        let encoded = formEncoded(id, secret)
        return [secret, "\(id):\(secret)", encoded, encoded.replacing("+", with: "%20")]
    }

    private static func formEncoded(_ id: String, _ secret: String) -> String {
        "\(FormEncoding.encode(id)):\(FormEncoding.encode(secret))"
    }
}
