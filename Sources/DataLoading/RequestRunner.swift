import AccessTokens

/// Runs a request: attaches the token, follows redirects, and tries once more if the server refuses the token.
///
/// A value without state: what changes during a run is in local variables of ``response(to:reporting:)``.
struct RequestRunner: Sendable {
    let session: LoadingSession
    let tokens: OriginTokens?

    /// A request that has been started, in the session of that moment.
    struct Call: Sendable {
        let message: Message
        let session: OriginTokens.Session?
        let responseLimit: Int
    }

    /// Starts a request: a sign-out from now on ends it unless it has its token.
    func call(_ request: Request) throws(DataLoadingError) -> Call {
        let message = try Message(request)
        return Call(message: message, session: try tokens?.session(for: message), responseLimit: request.responseLimit)
    }

    /// Sends a request until there is a response that its caller can use, and returns that response.
    func response(
        to call: Call, reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        var message = call.message
        var redirects = 0
        // Found once: a request keeps its user on redirects, too.
        var found: (token: AccessToken, service: TokenService)?
        if let session = call.session { found = (try await session.token(), session.service) }
        var isSecondAttempt = false
        while true {
            let response = try await session.send(message, with: found?.token, limit: call.responseLimit, reporting: report)
            if let next = try message.redirected(by: response) {
                redirects += 1
                guard redirects <= Message.maximumRedirects else {
                    throw DataLoadingError(
                        .redirectRefused, detail: "there were more than \(Message.maximumRedirects) redirects", response: response
                    )
                }
                message = next
                if next.hasLeftOrigin { found = nil }
                continue
            }
            guard let (token, service) = found, response.refusesToken else {
                try response.validate(hiding: found?.token)
                return response
            }
            guard !isSecondAttempt, message.body?.isReplayable != false else {
                await service.invalidate(token)
                throw response.failure(
                    isSecondAttempt ? nil : .bodyNotReplayable, isSecondRefusal: isSecondAttempt, hiding: token)
            }
            // However many requests were refused with this token, the service drops it once and loads once.
            found = (try OriginTokens.sendable(await service.retrieveToken(insteadOf: token)), service)
            isSecondAttempt = true
        }
    }
}
