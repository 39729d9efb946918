import AccessTokensHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The source of a credential: the common part of a file, a command and a URL.
struct CredentialSource: Sendable {
    /// The longest credential, in bytes.
    static let maximumSize = 1 << 16

    /// Its name in errors, such as "the file /run/token".
    let name: String

    /// Creates a source; the variable part of its name is made safe to print.
    init(_ kind: String, _ name: String) {
        self.name = "\(kind) \(ServerText.safe(name, hiding: []))"
    }

    /// Returns the credential in what was read, without the blanks and line breaks around it.
    func credential(in bytes: some Collection<UInt8>) throws(OAuthError) -> String {
        guard bytes.count <= Self.maximumSize else { throw tooLong }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw failure("is not UTF-8") }
        let credential = text.trimming { $0.isWhitespace }
        guard !credential.isEmpty else { throw failure("is empty") }
        return credential
    }

    var tooLong: OAuthError {
        failure("provides more than 64 KiB, too much for a token or an assertion: check that it provides nothing else")
    }

    /// An error that describes the source's problem without its contents.
    func failure(_ problem: String) -> OAuthError {
        OAuthError(.credentialsUnavailable("\(name) \(problem)"))
    }
}
