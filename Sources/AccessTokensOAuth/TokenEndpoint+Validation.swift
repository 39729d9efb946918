import TokenServiceHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension TokenEndpoint {
    /// Creates an endpoint after checking it, before anything is sent.
    ///
    /// - Parameters:
    ///   - name: What errors call the URL.
    ///   - additional: The user's own parameters of each request.
    ///
    /// Source: RFC 6749 §3.2 (TLS, no fragment, nothing empty or repeated), §2.3.1 (no secret in the URL).
    init(
        _ name: String = "token URL", url: URL, client: Client, transport: any TokenTransport,
        lifetimeWhenMissing: Duration? = nil, wallClock: @escaping @Sendable () -> Date,
        adding additional: [String: String] = [:]
    ) throws(OAuthError) {
        self.init(
            url: url, client: client, transport: transport, lifetimeWhenMissing: lifetimeWhenMissing, wallClock: wallClock)
        func require(_ condition: Bool, _ problem: String) throws(OAuthError) {
            guard condition else { throw OAuthError(.invalidConfiguration, detail: problem) }
        }
        try require(url.host?.isEmpty == false, "the \(name) must name a host")
        try require(url.fragment == nil, "the \(name) must not have a fragment")
        try require(url.user == nil && url.password == nil, "the \(name) must not contain a user or a password")
        try require(
            Origin(url)?.isPrivate == true, "the \(name) must begin with https, or with http for a loopback address")
        try require(!client.id.isEmpty, "the client id is empty")
        try require(client.secret?.isEmpty != true, "the client secret is empty")

        let inQuery = URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems?.map(\.name) ?? []
        try require(
            Self.reserved.isDisjoint(with: inQuery) && !inQuery.contains { additional[$0] != nil },
            "the \(name)'s query repeats a parameter of the form")
        for (name, value) in additional.sorted(by: { $0.key < $1.key }) {
            try require(!name.isEmpty && !value.isEmpty, "the additional parameter '\(name)' must have a name and a value")
            try require(!Self.reserved.contains(name), "the parameter '\(name)' belongs to the loader and can't be added")
        }
    }

    /// What belongs to a grant or to a client's authentication, much of it secret.
    ///
    /// Source: IANA registry "OAuth Parameters", those of the token request and of the revocation request.
    private static let reserved: Set<String> = [
        "grant_type", "scope", "client_id", "client_secret", "client_assertion", "client_assertion_type", "assertion",
        "username", "password", "refresh_token", "code", "code_verifier", "device_code", "redirect_uri",
        "subject_token", "actor_token", "token", "token_type_hint",
    ]
}
