#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Base64 for URLs, without padding.
///
/// Source: RFC 4648 §5; RFC 7636 App. A.
package enum Base64URL {
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// Returns the bytes; `nil` if the text is not valid.
    package static func decode(_ text: String) -> Data? {
        guard text.utf8.allSatisfy({ $0.isAlphanumeric || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }) else {
            return nil
        }
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard padding.count < 3 else { return nil }
        return Data(base64Encoded: text.replacing("-", with: "+").replacing("_", with: "/") + padding)
    }

    /// Returns random bytes of the system's generator as text.
    package static func random(bytes count: Int) -> String {
        var generator = SystemRandomNumberGenerator()
        return encode((0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }
}

/// A signed JSON Web Token; the program makes the signature.
///
/// Source: RFC 7515 §7.1; RFC 7519.
package enum SignedJWT {
    /// Returns the token in its compact form.
    ///
    /// - Parameters:
    ///   - header: The header in JSON.
    ///   - claims: The claims in JSON.
    ///   - sign: Returns the signature of the bytes.
    package static func make(
        header: some Sequence<UInt8>, claims: some Sequence<UInt8>, sign: (Data) async throws -> Data
    ) async throws -> String {
        let signed = "\(Base64URL.encode(header)).\(Base64URL.encode(claims))"
        return "\(signed).\(Base64URL.encode(try await sign(Data(signed.utf8))))"
    }
}
