import AccessTokensHTTP
import TokenServiceConcurrency

/// A secret, an assertion or a token that something else keeps up to date: a file, a program or a server of the platform.
///
/// ```swift
/// let identity = Credential.file(path: "/var/run/secrets/tokens/identity")
/// let client = try OAuthClient(id: "reports", authentication: .assertion(identity.read), tokenURL: url)
/// ```
///
/// It is a value without state: each load reads the credential again, so replacing it needs no restart. Neither the
/// value nor its errors show the credential.
public struct Credential: Sendable {
    private let source: CredentialSource
    private let reading: @Sendable @concurrent () async throws -> String

    init(_ source: CredentialSource, reading: @escaping @Sendable @concurrent () async throws -> String) {
        self.source = source
        self.reading = reading
    }

    /// Returns the credential without the blanks, line breaks and byte order marks around it.
    ///
    /// Concurrent reads are independent.
    ///
    /// - Throws: ``OAuthError`` with the code `credentialsUnavailable` if there is none, or if it is empty, longer than 64 KiB or
    ///   not UTF-8; ``file(path:)``, ``command(_:_:timeLimit:)`` and ``url(_:headers:member:timeLimit:transport:)`` list the
    ///   other errors of each. `CancellationError` promptly when its task is cancelled; the read of a file isn't cut off.
    @concurrent public func read() async throws -> String {
        try await reading()
    }
}

extension Credential: Redacted {
    /// The file's path, the program without its arguments, or the URL's host.
    package var text: String { "Credential(\(source.name))" }
}

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

    /// Returns the credential in what was read, without the blanks, line breaks and byte order marks around it.
    func credential(in bytes: some Collection<UInt8>) throws(OAuthError) -> String {
        guard bytes.count <= Self.maximumSize else { throw tooLong }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw failure("is not UTF-8") }
        // Some editors begin a file with a byte order mark.
        let credential = text.trimming { $0.isWhitespace || $0 == "\u{FEFF}" }
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
