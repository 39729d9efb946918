public import AccessTokensHTTP
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A secret, an assertion or a token that a platform's server returns at a URL.
///
/// ```swift
/// let identity = try CredentialURL(url, headers: ["Authorization": "bearer \(requestToken)"], member: "value")
/// let client = try OAuthClient(id: "deploy", authentication: .assertion { try await identity.read() }, tokenURL: tokenURL)
/// ```
///
/// For example, GitHub Actions' identity tokens, or a cloud's metadata server. Each load sends a request. Neither the source nor
/// its errors show a header, the URL's path or query, or the answer.
public struct CredentialURL: Sendable {
    private let request: TransportRequest
    private let member: String?
    private let transport: any TokenTransport

    /// Creates a source; nothing is sent yet.
    ///
    /// - Parameters:
    ///   - url: The URL: `https`, or `http` to a loopback address or to 169.254.169.254, where clouds have their metadata.
    ///   - headers: The request's headers.
    ///   - member: The member of a JSON object that holds the credential; `nil`: the answer's text is the credential.
    ///   - timeLimit: How long one read may take, 10 s unless said otherwise: below `RefreshPolicy(loadTimeout:)` together with the
    ///     request that follows. Clamped to 0.1 s through one hour.
    ///   - transport: Carries the requests.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct.
    public init(
        _ url: URL, headers: [String: String] = [:], member: String? = nil, timeLimit: Duration = .seconds(10),
        transport: any TokenTransport = URLSessionTransport()
    ) throws(OAuthError) {
        let origin = Origin(url)
        guard let origin, origin.isPrivate || origin.host == "169.254.169.254" else {
            throw OAuthError(
                .invalidConfiguration(
                    "the credential's URL must begin with https, or with http for a loopback or metadata address, "
                        + "and have no user or password"))
        }
        let isValid = headers.allSatisfy { name, value in
            HTTPToken.isValid(name) && value.utf8.allSatisfy { 0x20...0x7E ~= $0 }
        }
        guard isValid else {
            throw OAuthError(.invalidConfiguration("a header of the credential's URL has an invalid name or value"))
        }
        request = TransportRequest(
            url: url, method: "GET", headers: headers, timeLimit: timeLimit, maximumBodySize: CredentialSource.maximumSize)
        self.member = member
        self.transport = transport
    }

    /// Sends one `GET` and returns the credential, without the blanks and line breaks around it.
    ///
    /// Concurrent reads are independent. No redirect is followed, since the request may carry a secret.
    ///
    /// - Throws: ``OAuthError`` with the code `credentialsUnavailable` if no credential came: no answer in time, a status other
    ///   than 2xx, no such member, not UTF-8, empty, or longer than 64 KiB; or `CancellationError` promptly when its task is
    ///   cancelled.
    @concurrent public func read() async throws -> String {
        let answer: TransportResponse
        do {
            answer = try await transport.answer(to: request, hiding: Array(request.headers.values))
        } catch let failure as TransportError {
            throw error(failure)
        }
        guard (200..<300).contains(answer.status) else {
            var failure = source.failure("answered with status \(answer.status)")
            failure.status = answer.status
            failure.retryAfter = answer.header("Retry-After").flatMap { RetryAfter.wait($0, now: Date()) }
            throw failure
        }
        guard let member else { return try source.credential(in: answer.body) }
        let members = AnswerMembers(answer.body)
        if let problem = members.problem { throw source.failure("returned an answer that can't be read: \(problem)") }
        guard let text = members[member] else { throw source.failure("returned no '\(member)', or it isn't a string") }
        return try source.credential(in: text.utf8)
    }

    private func error(_ failure: TransportError) -> OAuthError {
        switch failure {
        case .timedOut: source.failure("did not answer completely within \(request.timeLimit)")
        case .tooLong: source.tooLong
        case .notSent(let detail, _), .connectionLost(let detail, _): source.failure("could not be reached: \(detail)")
        case .invalidConfiguration(let problem): OAuthError(.invalidConfiguration(problem))
        }
    }

    private var source: CredentialSource { CredentialSource("the URL at", request.url.host ?? "nowhere") }
}

extension CredentialURL: Redacted {
    /// The host; neither the path nor the headers.
    package var text: String { "CredentialURL(\(request.url.host ?? "nowhere"))" }
}
