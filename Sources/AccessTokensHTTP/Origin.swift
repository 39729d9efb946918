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
        // A host may be written in any case, and an IPv6 address in brackets.
        var host = (url.host ?? "").lowercased()
        if host.hasPrefix("[") { host.removeAll { $0 == "[" || $0 == "]" } }
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https", !host.isEmpty,
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

/// The addresses of this machine itself: no other machine can read what is sent to them.
package enum Loopback {
    /// Whether a host is `localhost`, `::1` or a complete IPv4 address in 127.0.0.0/8; a name that only begins like one isn't.
    ///
    /// Each number must be written without a sign or leading zeros: `getaddrinfo` reads `0127.0.0.1` as octal, 87.0.0.1.
    ///
    /// - Parameter host: In lower case, without brackets.
    package static func contains(_ host: String) -> Bool {
        let octets = host.split(separator: ".", omittingEmptySubsequences: false)
            .map { text in UInt8(text).flatMap { String($0) == text ? $0 : nil } }
        return host == "localhost" || host == "::1" || (octets.count == 4 && octets[0] == 127 && !octets.contains(nil))
    }
}
