import AccessTokensOAuth
import Foundation

/// Scheme, host and port of a URL: what tokens are bound to.
///
/// Source: RFC 6454 §4.
struct Origin: Hashable, Sendable {
    let scheme: String
    let host: String
    let port: Int

    /// The origin of an `http` or `https` URL that names a host, and no user or password; `nil` of any other.
    init?(_ url: URL) {
        // A host may be written in any case, an IPv6 address in brackets.
        let host = (url.host ?? "").lowercased().trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
        guard let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme), !host.isEmpty,
            url.user == nil, url.password == nil
        else { return nil }
        self.scheme = scheme
        self.host = host
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    /// Whether nobody on the way can read what is sent there: TLS, or this machine itself.
    var isPrivate: Bool { scheme == "https" || Loopback.contains(host) }
}
