#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How a client with a secret proves to the token endpoint who it is: one method per request, and never in the URL.
///
/// Source: RFC 6749 §2.3.1; the names are those of the IANA registry "OAuth Token Endpoint Authentication Methods".
public struct ClientAuthentication: Sendable, Hashable, CustomStringConvertible {
    /// In the `Authorization` header, the method that every server with client passwords must support.
    ///
    /// Client id and secret are form-encoded separately, then joined and encoded in Base64. A space becomes `%20`, which all
    /// servers read that undo the inner encoding; some read a plus as a plus. Some servers forget to undo it, and refuse
    /// secrets with other characters than letters, digits and `*-._`: use ``clientSecretPost`` with those.
    public static let clientSecretBasic = ClientAuthentication(description: "client_secret_basic")

    /// In the form, beside the other parameters.
    public static let clientSecretPost = ClientAuthentication(description: "client_secret_post")

    /// The method's registered name.
    public let description: String
}

/// Who asks the token endpoint, and how it proves that.
struct Client: Sendable {
    let id: String
    /// `nil` for a public client, which sends its id in the form and proves nothing.
    let secret: String?
    let authentication: ClientAuthentication

    /// Returns what to add to a request.
    func credentials() -> (headers: [String: String], parameters: [(name: String, value: String)]) {
        guard let secret else { return ([:], [("client_id", id)]) }
        return switch authentication {
        case .clientSecretPost: ([:], [("client_id", id), ("client_secret", secret)])
        // Source: RFC 6749 §2.3.1, RFC 7617 §2.
        default: (["Authorization": "Basic \(Data(userPass(secret).utf8).base64EncodedString())"], [])
        }
    }

    /// What no text may show: the secret, and what is joined for the header, as we encode it and as others may.
    var secrets: [String] { secret.map { [$0, "\(id):\($0)", formEncoded($0), userPass($0)] } ?? [] }

    // Each plus is a space: a plus itself is encoded.
    private func userPass(_ secret: String) -> String { formEncoded(secret).replacing("+", with: "%20") }

    private func formEncoded(_ secret: String) -> String { "\(FormEncoding.encode(id)):\(FormEncoding.encode(secret))" }
}
