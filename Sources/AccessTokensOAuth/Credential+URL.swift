public import AccessTokensHTTP
import TokenServiceConcurrency

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Credential {
    /// A credential that a platform's server returns at a URL.
    ///
    /// ```swift
    /// let identity = try Credential.url(url, headers: ["Authorization": "bearer \(requestToken)"], member: "value")
    /// ```
    ///
    /// For example, GitHub Actions' identity tokens, or a cloud's metadata server. Each read sends one `GET`. No redirect is
    /// followed, since the request may carry a secret. Neither the value nor its errors show a header, the URL's path or query,
    /// or the answer. A read fails if no answer arrives in time, if the status isn't 2xx, or if the answer lacks the member.
    ///
    /// - Parameters:
    ///   - url: The URL: `https`, or `http` to a loopback address or to 169.254.169.254, where clouds have their metadata.
    ///   - headers: The request's headers.
    ///   - member: The member of a JSON object that holds the credential; `nil`: the answer's text is the credential.
    ///   - timeLimit: How long one read may take, 10 s unless said otherwise: below `RefreshPolicy(loadTimeout:)` together with the
    ///     request that follows. Clamped to 0.1 s through one hour.
    ///   - transport: Carries the requests.
    /// - Throws: ``OAuthError`` with the code `invalidConfiguration`, which says what to correct; nothing is sent yet.
    public static func url(
        _ url: URL, headers: [String: String] = [:], member: String? = nil, timeLimit: Duration = .seconds(10),
        transport: any TokenTransport = URLSessionTransport()
    ) throws -> Credential {
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
        let request = TransportRequest(
            url: url, method: "GET", headers: headers, timeLimit: timeLimit, maximumBodySize: CredentialSource.maximumSize)
        let reader = CredentialReader(request: request, member: member, transport: transport)
        return Credential(reader.source) { try await reader.read() }
    }
}

/// Asks a server for a credential.
private struct CredentialReader: Sendable {
    let request: TransportRequest
    let member: String?
    let transport: any TokenTransport

    @concurrent func read() async throws -> String {
        let answer: TransportResponse
        do {
            answer = try await transport.answer(to: request, hiding: Array(request.headers.values))
        } catch let failure as TransportError {
            throw error(failure)
        }
        guard (200..<300).contains(answer.status) else {
            var failure = source.failure("answered with status \(answer.status)")
            failure.status = answer.status
            failure.retryAfter = RetryAfter.wait(in: answer, now: Date())
            throw failure
        }
        guard let member else { return try source.credential(in: answer.body) }
        let members = ResponseMembers(answer.body)
        if let problem = members.problem { throw source.failure("returned an answer that can't be read: \(problem)") }
        guard let text = members[member] else {
            throw source.failure("returned no '\(ServerText.line(member))', or it isn't a string")
        }
        return try source.credential(in: text.utf8)
    }

    private func error(_ failure: TransportError) -> OAuthError {
        switch failure {
        case .timedOut: source.failure("did not answer completely within \(request.timeLimit.shown)")
        case .tooLong: source.tooLong
        case .notSent(let detail, _): source.failure("could not be reached: \(detail)")
        case .connectionLost(let detail, _): source.failure("gave no complete answer: \(detail)")
        case .invalidConfiguration(let problem): OAuthError(.invalidConfiguration(problem))
        }
    }

    var source: CredentialSource { CredentialSource("the URL at", request.url.host(percentEncoded: true) ?? "nowhere") }
}
