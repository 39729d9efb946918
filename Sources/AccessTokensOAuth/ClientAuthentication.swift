#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// How a client proves to the token endpoint who it is: one method per request, and never in the URL.
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

    /// By nothing but its id in the form: a public client, such as an app, which can keep no secret.
    ///
    /// Source: RFC 6749 §2.1, §3.2.1.
    public static let publicClient = ClientAuthentication(description: "none")

    /// The method's registered name.
    public let description: String
}

/// Who asks the token endpoint, and how it proves that.
struct Client: Sendable {
    let id: String
    /// Empty for a public client.
    let secret: String
    let authentication: ClientAuthentication

    /// Returns what to add to a request.
    func credentials() -> (headers: [String: String], parameters: [(name: String, value: String)]) {
        switch authentication {
        case .clientSecretPost: ([:], [("client_id", id), ("client_secret", secret)])
        case .publicClient: ([:], [("client_id", id)])
        default: (["Authorization": "Basic \(basicCredentials)"], [])
        }
    }

    /// What no text may show: the secret, and what is joined for the header, as we encode it and as others may.
    var secrets: [String] { secret.isEmpty ? [] : [secret, "\(id):\(secret)", formEncoded, userPass] }

    /// Source: RFC 6749 §2.3.1, RFC 7617 §2.
    private var basicCredentials: String { Data(userPass.utf8).base64EncodedString() }

    // Each plus is a space: a plus itself is encoded.
    private var userPass: String { formEncoded.replacing("+", with: "%20") }

    private var formEncoded: String { "\(FormEncoding.encode(id)):\(FormEncoding.encode(secret))" }
}
