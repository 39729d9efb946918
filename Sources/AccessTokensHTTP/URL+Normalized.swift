#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

extension URL {
    /// The URL with scheme and host in lower case, the path's percent-encodings in upper case, and without the segments `.` and
    /// `..`, also if they are percent-encoded.
    ///
    /// libcurl changes a path in this way before it sends it, newer versions more than older ones; other clients don't. A proof must
    /// contain the URL as sent, so requests are sent in this form, which no version changes.
    ///
    /// Source: RFC 3986 §5.2.4, §6.2.2; RFC 9449 §4.3; libcurl 7.88 and 8.23, measured.
    package var normalized: URL {
        guard !isNormal, var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return self }
        parts.scheme = parts.scheme?.lowercased()
        parts.encodedHost = parts.encodedHost?.lowercased()
        let path = parts.percentEncodedPath
        if path.hasPrefix("/"), path.contains("/.") || path.contains("%") {
            parts.percentEncodedPath = Self.withoutDotSegments(Self.withCapitalEncodings(path))
        }
        return parts.url ?? self
    }

    /// Whether it certainly has this form, as most URLs do; taking one apart takes 25,000 instructions.
    private var isNormal: Bool {
        guard baseURL == nil else { return false }
        var text = absoluteString, slashes = 0, last: UInt8 = 0
        let isNormal = text.withUTF8 { bytes in
            unsafe bytes.allSatisfy { byte in
                defer { last = byte }
                switch byte {
                case UInt8(ascii: "/"):
                    slashes += 1
                    // Elsewhere an empty port may stand before it.
                    return last != UInt8(ascii: ":") || slashes == 1
                // Path, query and fragment.
                case _ where slashes > 2:
                    return byte < 0x80 && byte != UInt8(ascii: "%") && (byte, last) != (UInt8(ascii: "."), UInt8(ascii: "/"))
                case UInt8(ascii: ":"), UInt8(ascii: "."), UInt8(ascii: "-"): return true
                case UInt8(ascii: "0"): return last != UInt8(ascii: ":")
                default: return byte.isDigit || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte
                }
            }
        }
        return isNormal && slashes > 2
    }

    private static func withCapitalEncodings(_ path: String) -> String {
        // How many of the next characters belong to a percent-encoding.
        var digits = 0
        let bytes = path.utf8.map { byte in
            defer { digits = byte == UInt8(ascii: "%") ? 2 : max(digits - 1, 0) }
            let isSmall = digits > 0 && byte >= UInt8(ascii: "a")
            return isSmall ? byte - 0x20 : byte
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func withoutDotSegments(_ path: String) -> String {
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        var kept: [Substring] = [], isFolder = false
        for segment in segments {
            let plain = segment.replacing("%2E", with: ".")
            // A path that ends with such a segment is a folder.
            isFolder = plain == "." || plain == ".."
            if plain == ".." { _ = kept.popLast() } else if !isFolder { kept.append(segment) }
        }
        if isFolder { kept.append("") }
        return "/" + kept.joined(separator: "/")
    }
}
