import AccessTokens

/// The secrets that a value would give away: every token that a mirror leads to, and every text with a secret in it.
///
/// Mirrors of tokens and of other types hide their contents; this finds the tokens themselves.
func secrets(in value: Any, depth: Int = 0) -> [String] {
    if let token = value as? AccessToken { return [token.value] }
    if let salvaged = value as? SalvagedGrant { return [salvaged.grant.value] + secrets(in: salvaged.reason, depth: depth + 1) }
    if let text = value as? String { return text.contains("SECRET") ? [text] : [] }
    guard depth < 16 else { return [] }
    let inside = Mirror(reflecting: value).children.flatMap { secrets(in: $0.value, depth: depth + 1) }
    guard depth == 0 else { return inside }
    var dumped = ""
    dump(value, to: &dumped)
    return inside + ["\(value)", String(reflecting: value), dumped].filter { $0.contains("SECRET") }
}

extension AccessToken {
    /// A token whose every part is a secret.
    static func secret(_ name: String = "") -> AccessToken {
        AccessToken("SECRET access \(name)", lifetime: .seconds(3_600), refreshToken: "SECRET refresh \(name)")
    }
}
