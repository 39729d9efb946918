import AccessTokens

/// Runs a request: attaches the token, follows redirects, and tries once more if the server refuses the token.
///
/// A value without state: what changes during a run is in the local variables of ``response(to:reporting:)``.
struct RequestRunner: Sendable {
    let session: SharedSession
    let tokens: OriginTokens?

    /// Sends a request until there is an answer that its caller can use, and returns that.
    func response(
        to request: Request, reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        var message = try Message(request)
        var redirects = 0
        var isSecondAttempt = false
        while true {
            let found = try await tokens?.token(for: message), token = found?.token
            let response = try await session.send(message, with: token, limit: request.responseLimit, reporting: report)
            if let next = try message.redirected(by: response) {
                redirects += 1
                guard redirects <= Message.maximumRedirects else {
                    throw DataLoadingError(
                        .redirectRefused, detail: "there were more than \(Message.maximumRedirects) redirects", response: response
                    )
                }
                message = next
                continue
            }
            guard let token, let service = found?.service, response.refusesToken else {
                try response.validate(hiding: token)
                return response
            }
            // However many requests were refused with this token, the service drops it once and loads once.
            await service.invalidate(token)
            guard !isSecondAttempt else { throw response.failure(hiding: token) }
            guard message.body?.isReplayable != false else { throw response.failure(.bodyNotReplayable, hiding: token) }
            isSecondAttempt = true
        }
    }
}
