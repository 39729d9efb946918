#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The scheme, host and port of a URL, to which tokens are bound.
///
/// Source: RFC 6454 §4.
package struct Origin: Hashable, Sendable {
    package let scheme: String
    package let host: String
    package let port: Int

    /// Returns the origin of an `http` or `https` URL with a host and without user and password; `nil` for any other.
    package init?(_ url: URL) {
        // A host may be written in any case, an IPv6 address in brackets.
        let host = (url.host ?? "").lowercased().filter { !"[]".contains($0) }
        guard let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme), !host.isEmpty,
            url.user == nil, url.password == nil
        else { return nil }
        self.scheme = scheme
        self.host = host
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    /// Whether no other machine can read what is sent there: it uses TLS or stays on this machine.
    package var isPrivate: Bool { scheme == "https" || Loopback.contains(host) }
}

extension Origin: CustomStringConvertible {
    /// As a browser writes it, but always with the port.
    package var description: String { "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }
}
