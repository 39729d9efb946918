import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A token that an authorization server issued, with everything the response said about it.
///
/// Copying a token costs one reference count, so a cached hit stays cheap. A token knows its *lifetime*, not its deadline:
/// ``TokenService`` counts the lifetime from the start of the load, on its own clock, so changes of the wall clock don't affect
/// it.
///
/// A token is *the same token* as another when their ``value`` is the same string; `==` compares every field.
/// No description, dump or mirror of a token shows ``value``, ``refreshToken`` or any other text that the server wrote, except for
/// ``members`` that the program declares not to be secret.
///
/// Source: RFC 6749 §5.1 (the fields), §1.4 and §1.5 (access and refresh token).
public struct AccessToken: Sendable {
    private let storage: Storage

    /// Creates a token from the fields of a token response.
    ///
    /// - Parameters:
    ///   - value: The access token itself, which requests carry. A service refuses an empty one but checks nothing else. If it
    ///     doesn't come from a token response, check it for line breaks, which could begin another header.
    ///   - tokenType: How requests carry it; compared without case. Source: RFC 6749 §7.1.
    ///   - lifetime: How long it is valid, counted from the start of the load; `nil`: until invalidated.
    ///     Zero or less means already expired.
    ///   - refreshIn: When the server suggests refreshing it, counted likewise (a Microsoft extension).
    ///   - scope: The granted scopes, separated by spaces; `nil` if the server granted what was asked for. Source: RFC 6749 §3.3.
    ///   - refreshToken: The refresh token that gets the next one, if there is one.
    ///   - refreshTokenExpiration: When the refresh token itself expires, on the wall clock; `nil`: never, or it isn't known.
    ///   - keyThumbprint: The thumbprint of the key that the token is bound to; `nil` if anyone who has the token can use it.
    ///   - members: What else came with the token and is to be kept with it, such as an `id_token` or the address of an instance.
    ///   - shownMembers: The names of those members that aren't secret, so that descriptions of the token show them. Not stored.
    public init(
        _ value: String,
        tokenType: String = "Bearer",
        lifetime: Duration? = nil,
        refreshIn: Duration? = nil,
        scope: String? = nil,
        refreshToken: String? = nil,
        refreshTokenExpiration: Date? = nil,
        keyThumbprint: String? = nil,
        members: [String: String] = [:],
        showing shownMembers: Set<String> = []
    ) {
        let fields = Fields(
            value: value, tokenType: tokenType, lifetime: lifetime, refreshIn: refreshIn, scope: scope,
            refreshToken: refreshToken, refreshTokenEnd: Self.seconds(refreshTokenExpiration), keyThumbprint: keyThumbprint,
            members: members)
        storage = Storage(fields, showing: shownMembers)
    }

    private init(_ fields: Fields, shownAs other: AccessToken) {
        storage = Storage(fields, showing: other.storage.shownMembers)
    }

    /// The access token itself: a secret, for the `Authorization` header and nothing else.
    public var value: String { storage.fields.value }

    /// How requests carry the token, nearly always `Bearer`.
    public var tokenType: String { storage.fields.tokenType }

    /// How long the token is valid, counted from the start of its load; `nil`: until it is invalidated.
    public var lifetime: Duration? { storage.fields.lifetime }

    /// When the authorization server suggests refreshing the token, counted from the start of its load.
    public var refreshIn: Duration? { storage.fields.refreshIn }

    /// The granted scopes, separated by spaces; `nil` when the server granted what was asked for.
    public var scope: String? { storage.fields.scope }

    /// The refresh token for the next load: a secret that outlives the access token.
    public var refreshToken: String? { storage.fields.refreshToken }

    /// When the refresh token itself expires, on the wall clock; `nil`: never, or the server didn't say.
    ///
    /// Lets a program ask its user in time to sign in again. It is advice: no loader trusts a clock, so the refresh token is
    /// presented whatever the date, and the server decides.
    public var refreshTokenExpiration: Date? {
        storage.fields.refreshTokenEnd.isFinite ? Date(timeIntervalSinceReferenceDate: storage.fields.refreshTokenEnd) : nil
    }

    /// The thumbprint of the key that the token is bound to; `nil` if anyone who has the token can use it (RFC 9449 §6).
    ///
    /// A service hands out such a token from its store only if its ``TokenLoader/keyThumbprint`` is the same.
    public var keyThumbprint: String? { storage.fields.keyThumbprint }

    /// What else came with the token, by name: secrets, since a server may write one anywhere, unless the program says otherwise.
    ///
    /// A store keeps them with the token. `OAuthClient(keeping:showing:)` says which members of a response are kept, and which of
    /// them aren't secret.
    public var members: [String: String] { storage.fields.members }

    /// Whether the token's lifetime, counted from the creation of this value, has not yet passed.
    ///
    /// For code written against the articles' API. A token can expire between this check and its use. There is no leeway, and the
    /// check reads the machine's monotonic clock; ``TokenService`` never uses it. Ask the service for a token instead of keeping
    /// one.
    public var isValid: Bool {
        guard let lifetime = storage.fields.lifetime else { return true }
        return storage.created.duration(to: .now) < lifetime
    }

    /// In seconds since 2001.
    private static func seconds(_ end: Date?) -> Double { end?.timeIntervalSinceReferenceDate ?? .infinity }

    /// What two equal tokens have in common.
    private struct Fields: Sendable, Hashable {
        let value: String
        let tokenType: String
        var lifetime: Duration?
        var refreshIn: Duration?
        var scope: String?
        var refreshToken: String?
        /// Infinite if it never expires, which takes less memory than an optional date.
        var refreshTokenEnd: Double
        let keyThumbprint: String?
        let members: [String: String]
    }

    private final class Storage: Sendable {
        let fields: Fields
        let shownMembers: Set<String>
        let created = ContinuousClock.now

        init(_ fields: consuming Fields, showing shownMembers: Set<String>) {
            self.fields = fields
            self.shownMembers = shownMembers
        }
    }
}

extension AccessToken {
    /// An equal token that isn't identical.
    var copy: AccessToken { with(grantOf: self) }

    /// Whether the two are the same object, and not only equal.
    func isIdentical(to other: AccessToken) -> Bool { storage === other.storage }

    /// The same token with the refresh token of another, or without one.
    package func with(grantOf other: AccessToken?) -> AccessToken {
        var fields = storage.fields
        fields.refreshToken = other?.refreshToken
        fields.refreshTokenEnd = Self.seconds(other?.refreshTokenExpiration)
        return AccessToken(fields, shownAs: self)
    }

    /// The same token with its scope filled in.
    package func with(scope: String) -> AccessToken {
        var fields = storage.fields
        fields.scope = scope
        return AccessToken(fields, shownAs: self)
    }
}

extension AccessToken: Hashable {
    /// Compares every field of the two tokens, but not when they were created.
    public static func == (left: AccessToken, right: AccessToken) -> Bool {
        left.storage === right.storage || left.storage.fields == right.storage.fields
    }

    /// Hashes the token's identity, its string.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(value)
    }
}

/// The description repeats nothing that the server wrote, since a server may write a secret anywhere, except for members that the
/// program has declared not to be secret.
extension AccessToken: Redacted {
    /// The lifetime, the number of scopes, whether there is a refresh token, and the type if it is a known one.
    package var text: String {
        let known = ["Bearer", "DPoP"].first { $0.lowercased() == tokenType.lowercased() }
        var parts = [known.map { "\($0) token" } ?? "token of another type"]
        if let lifetime { parts.append("lifetime \(lifetime.shown)") }
        if let count = scope?.split(separator: " ").count { parts.append("\(count) scope\(count == 1 ? "" : "s")") }
        if refreshToken != nil { parts.append("with a refresh token") }
        let secrets = [value, refreshToken ?? value]
        for name in storage.shownMembers.sorted() {
            guard let text = members[name], !secrets.contains(where: { text.contains($0) }) else { continue }
            parts.append("\(name): \(String(text.prefix(100)).debugDescription)")
        }
        return "AccessToken(\(parts.joined(separator: ", ")))"
    }
}

extension AccessToken {
    /// Whether the token is bound to no key, or to the key with this thumbprint.
    package func isBound(onlyTo keyThumbprint: String?) -> Bool { self.keyThumbprint ?? keyThumbprint == keyThumbprint }

    /// Returns the token, or an expired copy if it is bound to another key: no caller gets it, but its grant is kept.
    ///
    /// The grant may still be good, and a sign-out has to revoke it.
    func usable(with keyThumbprint: String?) -> AccessToken {
        guard !isBound(onlyTo: keyThumbprint) else { return self }
        var fields = storage.fields
        (fields.lifetime, fields.refreshIn) = (.zero, nil)
        return AccessToken(fields, shownAs: self)
    }
}
