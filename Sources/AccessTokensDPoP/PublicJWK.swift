import TokenServiceConcurrency
import AccessTokensHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The public part of a key, as proofs carry it.
///
/// It never has a private member: a text that has one is refused.
///
/// Source: RFC 7517; RFC 7518 §6; RFC 8037 §2.
public struct PublicJWK: Sendable, Hashable {
    /// The members in the order in which RFC 9449 writes them, with values that need no escapes.
    private let members: [Member]

    private struct Member: Sendable, Hashable {
        let name: String
        let value: String

        init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    private init(_ members: Member...) {
        self.members = members
    }

    /// A key on the curve P-256, for `ES256`.
    ///
    /// - Parameter representation: The point's coordinates: the 64 bytes of CryptoKit's `rawRepresentation`, or the 65 of its
    ///   `x963Representation`.
    /// - Throws: ``DPoPError``.
    public static func p256(_ representation: Data) throws -> PublicJWK {
        let point = representation.count == 65 && representation.first == 4 ? representation.dropFirst() : representation
        guard point.count == 64 else {
            throw DPoPError(.invalidKey, "a point on P-256 has 64 bytes, or 65 with a 4 in front, not \(representation.count)")
        }
        return PublicJWK(
            Member("kty", "EC"), Member("x", Base64URL.encode(point.prefix(32))),
            Member("y", Base64URL.encode(point.suffix(32))), Member("crv", "P-256"))
    }

    /// An Ed25519 key, for `EdDSA` or `Ed25519`.
    ///
    /// - Parameter representation: The 32 bytes of CryptoKit's `rawRepresentation`.
    /// - Throws: ``DPoPError``.
    public static func ed25519(_ representation: Data) throws -> PublicJWK {
        guard representation.count == 32 else {
            throw DPoPError(.invalidKey, "an Ed25519 key has 32 bytes, not \(representation.count)")
        }
        return PublicJWK(Member("kty", "OKP"), Member("x", Base64URL.encode(representation)), Member("crv", "Ed25519"))
    }

    /// An RSA key, for `RS256` or `PS256`.
    ///
    /// - Parameters:
    ///   - modulus: The modulus, most significant byte first, of at least 2,048 bits (RFC 7518 §3.3).
    ///   - exponent: The exponent, most significant byte first.
    /// - Throws: ``DPoPError``.
    public static func rsa(modulus: Data, exponent: Data) throws -> PublicJWK {
        // Drop leading zeros, which would change the thumbprint (RFC 7518 §2, Base64urlUInt).
        let modulus = modulus.drop { $0 == 0 }, exponent = exponent.drop { $0 == 0 }
        guard 256...2048 ~= modulus.count, 1...8 ~= exponent.count else {
            throw DPoPError(.invalidKey, "an RSA key has a modulus of 2,048 to 16,384 bits and an exponent of 8 bytes at most")
        }
        return PublicJWK(
            Member("kty", "RSA"), Member("n", Base64URL.encode(modulus)), Member("e", Base64URL.encode(exponent)))
    }

    /// Reads a key from JSON, as key services and `openssl`'s wrappers write it.
    ///
    /// Only what the key's type requires is kept.
    ///
    /// - Throws: ``DPoPError``, which quotes nothing of the text.
    public init(json: Data) throws {
        struct Members: Decodable {
            let kty, crv, x, y, n, e, d, p, q, dp, dq, qi, k: String?
        }
        guard json.count <= 1 << 16, let key = try? JSONDecoder().decode(Members.self, from: json) else {
            throw DPoPError(.invalidKey, "it is not the JSON of a key")
        }
        guard [key.d, key.p, key.q, key.dp, key.dq, key.qi, key.k].allSatisfy({ $0 == nil }) else {
            throw DPoPError(.invalidKey, "it contains the private key: pass only the public members")
        }
        let bytes = { (text: String?) in text.flatMap(Base64URL.decode) ?? Data() }
        switch (key.kty, key.crv) {
        case ("EC", "P-256"):
            let (x, y) = (bytes(key.x), bytes(key.y))
            guard x.count == 32, y.count == 32 else { throw DPoPError(.invalidKey, "x and y must have 32 bytes each") }
            self = try .p256(x + y)
        case ("EC", "P-384"), ("EC", "P-521"):
            let (x, y) = (bytes(key.x), bytes(key.y)), size = key.crv == "P-384" ? 48 : 66
            guard x.count == size, y.count == size else {
                throw DPoPError(.invalidKey, "x and y must have \(size) bytes each")
            }
            self.init(
                Member("kty", "EC"), Member("x", Base64URL.encode(x)), Member("y", Base64URL.encode(y)),
                Member("crv", size == 48 ? "P-384" : "P-521"))
        case ("OKP", "Ed25519"): self = try .ed25519(bytes(key.x))
        case ("RSA", _): self = try .rsa(modulus: bytes(key.n), exponent: bytes(key.e))
        default: throw DPoPError(.invalidKey, "its type must be EC on P-256, P-384 or P-521, OKP on Ed25519, or RSA")
        }
    }

    /// The SHA-256 of the key's required members, in Base64 for URLs, which identifies the key (RFC 7638).
    package var thumbprint: String {
        Base64URL.encode(SHA256.hash(Array(Self.json(members.sorted { $0.name < $1.name }).utf8)))
    }

    /// The key in JSON.
    package var json: String { Self.json(members) }

    /// The algorithms that fit its type of key (RFC 7518 §3.1; RFC 8037 §3.1; RFC 9864).
    var algorithms: [String] {
        switch members.last?.value {
        case "P-256": ["ES256"]
        case "P-384": ["ES384"]
        case "P-521": ["ES512"]
        case "Ed25519": ["EdDSA", "Ed25519"]
        default: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
        }
    }

    private static func json(_ members: [Member]) -> String {
        "{\(members.map { "\"\($0.name)\":\"\($0.value)\"" }.joined(separator: ","))}"
    }
}

extension PublicJWK: Redacted {
    /// The key's type.
    package var text: String { "PublicJWK(\(algorithms[0]))" }
}
