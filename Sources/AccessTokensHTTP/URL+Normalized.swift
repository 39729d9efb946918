#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

extension URL {
    /// The URL with scheme and host in lower case, and without the segments `.` and `..`.
    ///
    /// libcurl removes these segments before it sends a URL, other clients don't. A proof must contain the URL as sent, so
    /// requests are sent in this form.
    ///
    /// Source: RFC 3986 §5.2.4, §6.2.2; RFC 9449 §4.3.
    package var normalized: URL {
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return self }
        parts.scheme = parts.scheme?.lowercased()
        parts.encodedHost = parts.encodedHost?.lowercased()
        let path = parts.percentEncodedPath
        if path.hasPrefix("/"), path.contains("/.") { parts.percentEncodedPath = Self.withoutDotSegments(path) }
        return parts.url ?? self
    }

    private static func withoutDotSegments(_ path: String) -> String {
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        var kept: [Substring] = []
        for segment in segments where segment != "." {
            if segment == ".." { _ = kept.popLast() } else { kept.append(segment) }
        }
        // A path that ends with such a segment is a folder.
        if segments.last == "." || segments.last == ".." { kept.append("") }
        return "/" + kept.joined(separator: "/")
    }
}
