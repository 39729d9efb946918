/// The addresses of this machine itself: no other machine can read what is sent to them.
package enum Loopback {
    /// Whether a host is `localhost`, `::1` or a complete IPv4 address in 127.0.0.0/8; not a name that only begins like one.
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
