public import AccessTokensHTTP
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A key that tokens are bound to, so that only its owner can use them.
///
/// ```swift
/// let key = try DPoPKey(.p256(enclave.publicKey.rawRepresentation), algorithm: "ES256") { try await enclave.signature(for: $0) }
/// let client = try OAuthClient(id: "app", tokenURL: url, proof: key)
/// let factory = DataLoaderFactory(tokens: try OriginTokens(tokens, for: [apiURL], proof: key))
/// ```
///
/// You provide the signature, so the private key can stay in a key service or a security chip. Give the same object to the client
/// and to the loaders of data: it remembers the last nonce of each server, which goes to that server and to no other. Neither it
/// nor its errors show a proof, a nonce or a part of the key.
///
/// With an HTTP client of your own, add the headers of ``proof(method:url:accessToken:nonce:)`` to each request that carries a
/// token, and give ``nonce(in:from:)`` the headers of each answer.
///
/// Source: RFC 9449.
public final class DPoPKey: TokenProof {
    /// The public key, which each proof contains.
    package let publicKey: PublicJWK

    /// The signatures' algorithm.
    package let algorithm: String

    /// The public key's thumbprint, which tokens bound to the key carry.
    public let keyThumbprint: String

    private let nonces = Lock(DPoPNonces())
    private let timeLimit: Duration
    private let sleep: @Sendable (Duration) async throws -> Void
    private let wallClock: @Sendable () -> Date
    private let makeID: @Sendable () -> String
    private let executor: (any TaskExecutor)?
    private let sign: @Sendable @concurrent (Data) async throws -> Data

    /// Creates a key.
    ///
    /// - Parameters:
    ///   - publicKey: The public key.
    ///   - algorithm: The signatures' algorithm, such as `ES256` (RFC 7518 §3.1); it must fit the key.
    ///   - timeLimit: How long one signature may take. Clamped to 0.1 s through one hour.
    ///   - clock: The clock that measures it.
    ///   - wallClock: The time that proofs carry; servers refuse a proof that is some seconds old.
    ///   - sign: Returns the signature of the bytes in the form that the algorithm has in RFC 7518 §3: for `ES256` the 64 bytes
    ///     of R and S, not DER. It is called for each request, maybe concurrently.
    /// - Throws: ``DPoPError`` if the algorithm doesn't fit the key.
    public convenience init(
        _ publicKey: PublicJWK, algorithm: String, timeLimit: Duration = .seconds(10),
        clock: some Clock<Duration> = ContinuousClock(), wallClock: @escaping @Sendable () -> Date = { Date() },
        sign: @escaping @Sendable @concurrent (Data) async throws -> Data
    ) throws {
        try self.init(
            publicKey, algorithm: algorithm, timeLimit: timeLimit, clock: clock, wallClock: wallClock,
            makeID: { Base64URL.random(bytes: 16) }, executor: nil, sign: sign)
    }

    /// The same with identifiers for proofs, and an executor for signing, that a test chooses.
    package init(
        _ publicKey: PublicJWK, algorithm: String, timeLimit: Duration = .seconds(10),
        clock: some Clock<Duration> = ContinuousClock(), wallClock: @escaping @Sendable () -> Date,
        makeID: @escaping @Sendable () -> String, executor: (any TaskExecutor)?,
        sign: @escaping @Sendable @concurrent (Data) async throws -> Data
    ) throws {
        guard publicKey.algorithms.contains(algorithm) else {
            let fitting = publicKey.algorithms.joined(separator: ", ")
            throw DPoPError(.invalidKey, "its algorithm must be one of \(fitting)")
        }
        self.publicKey = publicKey
        self.algorithm = algorithm
        keyThumbprint = publicKey.thumbprint
        self.timeLimit = min(max(timeLimit, .milliseconds(100)), .seconds(3600))
        sleep = { try await clock.sleep(for: $0) }
        self.wallClock = wallClock
        self.makeID = makeID
        self.executor = executor
        self.sign = sign
    }

    /// Returns the proof for sending one request once; each has its own `jti`.
    ///
    /// - Parameters:
    ///   - method: The request's HTTP method.
    ///   - url: Where the request goes; its query and fragment are left out, its scheme and host put in lower case, the path's
    ///     percent-encodings in upper case, and the segments `.` and `..` removed, also `%2E` and `%2E%2E` (RFC 3986 §6.2.2). An
    ///     HTTP client that sends a URL unchanged must get it in this form.
    ///   - accessToken: The token that it carries; `nil` if it is sent to an authorization server.
    ///   - nonce: The nonce that the server has just asked for; `nil`: the last one known of the server.
    /// - Throws: ``DPoPError``; what the signing closure throws; or `CancellationError` promptly when its task is cancelled.
    ///
    /// Source: RFC 9449 §4.2.
    @concurrent public func proof(
        method: String, url: URL, accessToken: String?, nonce: String?
    ) async throws -> RequestProof {
        guard let origin = Origin(url), let target = Self.target(of: url) else {
            throw DPoPError(.invalidRequest, "its URL must be http or https, in ASCII, with a host and without user and password")
        }
        guard HTTPToken.isValid(method) else { throw DPoPError(.invalidRequest, "its method is not a valid token") }
        if let nonce { try DPoPNonces.check(nonce) }
        let nonce = nonce ?? nonces.withLock { $0.nonce(for: origin) }
        let issued = wallClock()
        let time = issued.timeIntervalSince1970
        guard abs(time) < 1e15 else { throw DPoPError(.invalidRequest, "the wall clock's time is out of range") }
        // In the order of the RFC's examples. None of the values needs an escape.
        var claims = #""jti":"\#(makeID())","htm":"\#(method)","htu":"\#(target)","iat":\#(Int(time))"#
        if let accessToken { claims += #","ath":"\#(Base64URL.encode(SHA256.hash(Array(accessToken.utf8))))""# }
        if let nonce { claims += #","nonce":"\#(nonce)""# }
        let header = #"{"typ":"dpop+jwt","alg":"\#(algorithm)","jwk":\#(publicKey.json)}"#
        let proof = try await SignedJWT.make(header: header.utf8, claims: "{\(claims)}".utf8, sign: signature)
        return RequestProof(headers: ["DPoP": proof], nonce: nonce, issued: issued)
    }

    /// Remembers the nonce in a server's answer for the next requests to its origin, and returns it; `nil` if there is none.
    ///
    /// - Throws: ``DPoPError`` if the nonce can't be used; it isn't remembered then.
    ///
    /// Source: RFC 9449 §8, §9.
    public func nonce(in headers: [String: String], from url: URL) throws -> String? {
        guard let nonce = headers.header("DPoP-Nonce"), let origin = Origin(url) else { return nil }
        try nonces.withLock { nonces throws(DPoPError) in try nonces.remember(nonce, for: origin) }
        return nonce
    }

    /// Returns the URL as proofs carry it (RFC 9449 §4.2), normalized as servers do before they compare it (§4.3).
    private static func target(of url: URL) -> String? {
        guard let parts = URLComponents(url: url.normalized, resolvingAgainstBaseURL: true), let origin = Origin(url) else {
            return nil
        }
        let host = origin.host.contains(":") ? "[\(origin.host)]" : origin.host
        let port = origin.port == (origin.scheme == "https" ? 443 : 80) ? "" : ":\(origin.port)"
        let path = parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath
        let target = "\(origin.scheme)://\(host)\(port)\(path)"
        return target.utf8.allSatisfy { 0x21...0x7E ~= $0 && $0 != 0x22 && $0 != 0x5C } ? target : nil
    }

    /// Returns the program's signature; throws if it takes too long.
    private func signature(of bytes: Data) async throws -> Data {
        let result = SingleResult<Data>()
        // Not a child task: signing may ignore cancellation, and then nothing waits for it.
        let signing = Task(executorPreference: executor) { [sign] in
            do { result.complete(with: .success(try await sign(bytes))) } catch { result.complete(with: .failure(error)) }
        }
        let limit = Task(executorPreference: executor) { [sleep, timeLimit] in
            try await sleep(timeLimit)
            result.complete(with: .failure(DPoPError(.signingTimedOut, "\(timeLimit.shown)")))
            signing.cancel()
        }
        defer { limit.cancel() }
        let signature = try await withTaskCancellationHandler {
            try await result.value()
        } onCancel: {
            result.complete(with: .failure(CancellationError()))
            signing.cancel()
        }
        // RFC 7518 §3.4: many libraries use DER by default.
        let expected = ["ES256": 64, "ES384": 96, "ES512": 132, "EdDSA": 64, "Ed25519": 64][algorithm]
        guard !signature.isEmpty, signature.count == expected ?? signature.count else {
            throw DPoPError(
                .invalidSignature,
                "it has \(signature.count) bytes, and one of \(algorithm) has \(expected.map(String.init) ?? "some"), in the raw form, "
                    + "not DER")
        }
        return signature
    }
}

extension DPoPKey: Redacted {
    /// The algorithm, without any part of the key.
    package var text: String { "DPoPKey(\(algorithm))" }
}
