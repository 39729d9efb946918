public import AccessTokens
public import AccessTokensHTTP
public import Foundation
import TokenServiceConcurrency

/// Tokens bound to the servers that they are for.
///
/// ```swift
/// let factory = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [apiURL]))
/// ```
///
/// A request to one of these origins carries the current token of its service; a request to any other origin carries none. A
/// redirect that leaves the request's own origin doesn't carry the token, wherever it leads. On Linux a request to a loopback
/// origin without TLS is refused if the environment names a proxy for it (`http_proxy`, `all_proxy`), which would read the token,
/// and `no_proxy` does not name the host.
///
/// Tokens of the type `DPoP` need the key that they are bound to, as `proof`: each request then carries its own proof. A request
/// that the server refuses only because of the proof's nonce is sent again with the server's nonce, at most twice.
///
/// Source: RFC 9700 §4.9.1; RFC 6750 §5.3; RFC 9449 §7.
public struct OriginTokens: Sendable {
    /// The tokens for an origin's requests.
    struct Binding: Sendable {
        /// Finds the service for each request, so that this value keeps no service alive.
        let service: @Sendable () -> TokenService
        let usage: TokenUsage
        let stepUp: StepUp?
    }

    let bindings: [Origin: Binding]
    let proof: (any TokenProof)?

    /// Binds the tokens of a service to origins.
    ///
    /// - Parameters:
    ///   - service: The service that the tokens come from.
    ///   - origins: URLs whose scheme, host and port count: `https`, or `http` to a loopback address.
    ///   - usage: Where requests carry the token, and which answers say that it is no longer valid.
    ///   - proof: The key that the tokens are bound to, such as a `DPoPKey`; `nil` if they are bound to none.
    ///   - stepUp: Gets a token with more scopes when a resource asks for them; `nil`: the request ends with the error
    ///     `insufficientScope`.
    /// - Throws: ``DataLoadingError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        _ service: TokenService, for origins: [URL], usage: TokenUsage = TokenUsage(), proof: (any TokenProof)? = nil,
        stepUp: StepUp? = nil
    ) throws {
        try Self.check(usage, with: proof)
        var bindings: [Origin: Binding] = [:]
        for url in origins {
            let origin = try Self.origin(of: url)
            bindings[origin] = Binding(service: { service }, usage: usage, stepUp: stepUp)
        }
        self.bindings = bindings
        self.proof = proof
    }

    /// Binds the tokens of several keys to origins: a request carries the token of its origin's key.
    ///
    /// ```swift
    /// let tokens = try OriginTokens(keys: [reportsURL: "reports", mailURL: "mail"]) { services[$0] }
    /// ```
    ///
    /// - Parameters:
    ///   - keys: The key of each URL, whose scheme, host and port count: `https`, or `http` to a loopback address.
    ///   - service: Finds a key's service, in `TokenServices` for example. Called whenever a request is started, on any thread,
    ///     so that this value keeps no service alive.
    ///   - usage: Where requests with a key's tokens carry them, and which answers say that one is no longer valid.
    ///   - proof: The key that the tokens are bound to, such as a `DPoPKey`; `nil` if they are bound to none.
    ///   - stepUp: Gets a token with more scopes for a key when a resource asks for them. It is created once for each key, whose
    ///     origins share what it returns; no other key's tokens change. `nil`: the request ends with the error
    ///     `insufficientScope`.
    /// - Throws: ``DataLoadingError`` with the code `invalidConfiguration`, which says what to correct. One origin with two keys
    ///   is an error, too.
    public init<Key: Hashable & Sendable>(
        keys: [URL: Key], usage: (Key) -> TokenUsage = { _ in TokenUsage() }, proof: (any TokenProof)? = nil,
        stepUp: (Key) -> StepUp? = { _ in nil },
        service: @escaping @Sendable (Key) -> TokenService
    ) throws {
        var bound: [Origin: Key] = [:]
        for (url, key) in keys {
            let origin = try Self.origin(of: url)
            guard bound.updateValue(key, forKey: origin) ?? key == key else {
                throw DataLoadingError(.invalidConfiguration, detail: "two URLs of \(origin) have different keys")
            }
        }
        let ways = Dictionary(uniqueKeysWithValues: Set(bound.values).map { ($0, (usage: usage($0), stepUp: stepUp($0))) })
        for way in ways.values { try Self.check(way.usage, with: proof) }
        bindings = bound.mapValues { key in
            Binding(service: { service(key) }, usage: ways[key]?.usage ?? TokenUsage(), stepUp: ways[key]?.stepUp)
        }
        self.proof = proof
    }

    private static func check(_ usage: TokenUsage, with proof: (any TokenProof)?) throws(DataLoadingError) {
        let isInTheWay = usage.place != nil && proof != nil
        guard let objection = isInTheWay ? "a token that is bound to a key goes into Authorization" : usage.objection else {
            return
        }
        throw DataLoadingError(.invalidConfiguration, detail: objection)
    }

    private static func origin(of url: URL) throws(DataLoadingError) -> Origin {
        guard let origin = Origin(url) else {
            let scheme = url.scheme.map { "the scheme \($0)" } ?? "no scheme"
            let host = url.host(percentEncoded: true).map { "the host \($0)" } ?? "no host"
            throw DataLoadingError(
                .invalidConfiguration,
                detail: "its URL, with \(scheme) and \(host), must be http or https, with a host and without user and password")
        }
        guard origin.isPrivate else {
            throw DataLoadingError(
                .invalidConfiguration,
                detail: "its URL must begin with https, since \(origin.host) isn't a loopback address")
        }
        return origin
    }

    /// A service together with the session in which a request was started.
    struct Session: Sendable {
        let service: TokenService
        let generation: Int
        let usage: TokenUsage
        let proof: (any TokenProof)?
        let stepUp: StepUp?
        /// How long the request waits for tokens, on the service's clock; `nil`: without a limit.
        var deadline: Duration?

        /// Returns a token of the session.
        func token() async throws -> AccessToken {
            try sendable(await inTime { try await service.retrieveToken(seen: generation, within: rest) })
        }

        /// Returns a token of the session to replace one that a server has refused.
        ///
        /// However many requests were refused with it, the service drops it once and loads once.
        func token(insteadOf refused: AccessToken) async throws -> AccessToken {
            try sendable(await inTime { try await service.retrieveToken(insteadOf: refused, within: rest) })
        }

        /// Waits for a turn among requests.
        func wait(for turn: SingleResult<Void>) async throws {
            guard let deadline else { return try await turn.value() }
            if await service.wait(for: turn, until: deadline) { return }
            try Task.checkCancellation()
            throw DataLoadingError(.timedOut)
        }

        private var rest: Duration? { deadline.map { $0 - service.now } }

        /// The wait for a token is part of the request's time.
        private func inTime(_ retrieve: () async throws -> AccessToken) async throws -> AccessToken {
            do {
                return try await retrieve()
            } catch let error as TokenServiceError {
                if error.code == .deadlineExceeded { throw DataLoadingError(.timedOut, underlying: error) }
                throw error
            }
        }

        func sendable(_ token: AccessToken) throws(DataLoadingError) -> AccessToken {
            try OriginTokens.sendable(token, in: usage, provenBy: proof)
        }
    }

    /// Returns the current session for a message; `nil` if the message goes elsewhere or has other authentication.
    func session(for message: Message) throws(DataLoadingError) -> Session? {
        guard !message.hasLeftOrigin, let binding = bindings[message.origin],
            !binding.usage.isTaken(in: message.url, headers: message.headers)
        else { return nil }
        if message.origin.scheme != "https",
            let objection = EnvironmentProxy.objection(toPlainRequestTo: message.origin.host)
        {
            throw DataLoadingError(.invalidConfiguration, detail: objection)
        }
        let service = binding.service()
        return Session(
            service: service, generation: service.currentGeneration, usage: binding.usage, proof: proof, stepUp: binding.stepUp)
    }

    /// Returns the token if it can be sent; throws otherwise.
    private static func sendable(
        _ token: AccessToken, in usage: TokenUsage, provenBy proof: (any TokenProof)?
    ) throws(DataLoadingError) -> AccessToken {
        switch token.tokenType.lowercased() {
        case "bearer": break
        case "dpop":
            guard let proof else {
                throw DataLoadingError(.unusableToken, detail: "it is bound to a key: pass that key to OriginTokens as proof")
            }
            guard token.keyThumbprint ?? proof.keyThumbprint == proof.keyThumbprint else {
                throw DataLoadingError(.unusableToken, detail: "it is bound to a key other than the proof's: load a new token")
            }
        default:
            guard usage.place != nil else {
                throw DataLoadingError(.unusableToken, detail: "it is neither a Bearer nor a DPoP token")
            }
        }
        // RFC 6750 §2.1; in particular no line break, which would start another header.
        guard HTTPToken.isVisible(token.value) else {
            throw DataLoadingError(.unusableToken, detail: "it contains characters that a header can't carry")
        }
        return token
    }
}

/// The description says where the tokens go and shows none of them.
extension OriginTokens: Redacted {
    /// The origins that get tokens.
    package var text: String {
        "OriginTokens(for \(bindings.keys.map { "\($0)" }.sorted().joined(separator: ", ")))"
    }
}
