import AccessTokens
import AccessTokensHTTP

/// Sends a message once, and returns the response whatever its status: a ``LoadingSession``, or a test's replacement.
protocol MessageSender: Sendable {
    func send(
        _ message: Message, with carried: CarriedToken?, limit: Int,
        reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response
}

/// Runs a request: attaches the token, follows redirects, and tries once more if the server refuses the token, or its proof's
/// nonce.
///
/// A value without state: the state of a run is in local variables of ``response(to:reporting:)``.
struct RequestRunner: Sendable {
    let session: any MessageSender
    let tokens: OriginTokens?

    /// A request that has been started, in the session of that moment.
    struct Call: Sendable {
        let message: Message
        let session: OriginTokens.Session?
        let responseLimit: Int
    }

    /// Starts a request; from now on a sign-out ends it, unless it already has a token.
    func call(_ request: Request) throws(DataLoadingError) -> Call {
        let message = try Message(request)
        return Call(message: message, session: try tokens?.session(for: message), responseLimit: request.responseLimit)
    }

    /// Sends a request until there is a usable response, and returns that response.
    func response(
        to call: Call, reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        var message = call.message
        var redirects = 0
        // Found only once, so that a request keeps its user on redirects, too.
        var found: (token: AccessToken, session: OriginTokens.Session)?
        if let session = call.session { found = (try await session.token(), session) }
        var isSecondAttempt = false, hasSteppedUp = false
        // The nonce from a refusal, for sending the message once more with the same token.
        var nonce: String?
        var hasRepeated = false, earlier: [String] = []
        while true {
            var carried = try await carried(found, by: message, nonce: nonce)
            carried?.earlier = earlier
            if nonce != nil, let session = found?.session, !(await session.service.isSignedIn(since: session.generation)) {
                throw TokenServiceError(.reset)
            }
            let response = try await session.send(message, with: carried, limit: call.responseLimit, reporting: report)
            let answer = ProofAnswer(response, to: carried, from: message.url)
            if let next = try message.redirected(by: response) {
                redirects += 1
                guard redirects <= Message.maximumRedirects else {
                    throw DataLoadingError(
                        .redirectRefused, detail: "there were more than \(Message.maximumRedirects) redirects", response: response
                    )
                }
                message = next
                // Another request, and the redirect may have brought a newer one.
                (nonce, hasRepeated) = (nil, false)
                if next.hasLeftOrigin { found = nil }
                continue
            }
            if let answer, answer.demandsNonce {
                nonce = try answer.nonce(isRepeated: hasRepeated, canRepeat: message.body?.isReplayable != false)
                (hasRepeated, earlier) = (true, carried?.secrets ?? [])
                continue
            }
            (nonce, hasRepeated) = (nil, false)
            if !hasSteppedUp, let (token, session) = found, message.body?.isReplayable != false,
                let wider = try await wider(than: token, in: session, after: response, hiding: carried)
            {
                found = (wider, session)
                hasSteppedUp = true
                continue
            }
            guard let (token, session) = found, response.refuses(token) else {
                try response.validate(hiding: carried)
                return response
            }
            guard !isSecondAttempt, message.body?.isReplayable != false else {
                await session.service.invalidate(token)
                throw response.failure(
                    isSecondAttempt ? nil : .bodyNotReplayable, isSecondRefusal: isSecondAttempt, hiding: carried)
            }
            found = (try await session.token(insteadOf: token), session)
            isSecondAttempt = true
        }
    }

    /// Returns a token with the scope that a response reports as missing; `nil` if it reports none.
    private func wider(
        than token: AccessToken, in session: OriginTokens.Session, after response: Response, hiding carried: CarriedToken?
    ) async throws -> AccessToken? {
        guard let stepUp = session.stepUp, response.status == 403, let challenge = response.challenge(for: token),
            challenge["error"] == "insufficient_scope", let wanted = stepUp.wanted(challenge["scope"])
        else { return nil }
        do {
            if let wider = try await stepUp.token(insteadOf: token, for: wanted, in: session) { return wider }
        } catch {
            if error is CancellationError || Task.isCancelled { throw CancellationError() }
            // The session is over.
            if error is TokenServiceError || error is DataLoadingError { throw error }
            throw response.failure(detail: "the step-up failed", underlying: error, hiding: carried)
        }
        throw response.failure(detail: "the step-up's token has no more scopes", hiding: carried)
    }

    /// Returns the authentication of a message: the token and, if the token is bound to a key, a proof.
    private func carried(
        _ found: (token: AccessToken, session: OriginTokens.Session)?, by message: Message, nonce: String?
    ) async throws -> CarriedToken? {
        guard let (token, session) = found else { return nil }
        guard token.isOfDPoP, let maker = session.proof else { return CarriedToken(token: token) }
        do {
            let proof = try await maker.proof(
                method: message.method, url: message.url, accessToken: token.value, nonce: nonce)
            return CarriedToken(token: token, maker: maker, proof: proof)
        } catch {
            if error is CancellationError || Task.isCancelled { throw CancellationError() }
            // The text of the program's own error may contain a secret.
            let reason =
                error is any TokenLoadFailure ? "\(error)" : "signing failed with an error of type \(type(of: error))."
            throw DataLoadingError(.proofUnavailable, detail: String(reason.dropLast()), underlying: error)
        }
    }
}
