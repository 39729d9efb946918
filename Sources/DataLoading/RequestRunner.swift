import AccessTokens
import AccessTokensHTTP

/// Sends a message once, and returns the response whatever its status: a ``LoadingSession``, or a test's replacement.
protocol MessageSender: Sendable {
    func send(
        _ message: Message, with carried: CarriedToken?, limit: Int,
        reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response

    /// How long an exchange may take; `nil`: without a limit.
    var timeLimit: Duration? { get }
}

extension MessageSender {
    var timeLimit: Duration? { nil }
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

    /// What is known of a request between two exchanges.
    private struct Run {
        var message: Message
        /// Found only once, so that a request keeps its user on redirects, too.
        var found: (token: AccessToken, session: OriginTokens.Session)?
        var redirects = 0
        var isSecondAttempt = false
        /// The scope or the challenge for which a step-up has got the token.
        var steppedUpFor: String?
        /// The nonce from a refusal, for sending the message once more with the same token.
        var nonce: String?
        var repetitions = 0, earlier: [String] = []
    }

    /// Sends a request until there is a usable response, and returns that response.
    func response(
        to call: Call, reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        var run = Run(message: call.message)
        if var session = call.session {
            // A request waits for its tokens no longer than for an exchange.
            session.deadline = self.session.timeLimit.map { session.service.now + $0 }
            run.found = (try await session.token(), session)
        }
        return try await response(to: run, limit: call.responseLimit, reporting: report)
    }

    private func response(
        to run: Run, limit: Int, reporting report: @escaping @Sendable (StatefulRequest.Progress) -> Void
    ) async throws -> Response {
        var run = run
        while true {
            var carried = try await carried(run.found, by: run.message, nonce: run.nonce)
            carried?.earlier = run.earlier
            if run.nonce != nil, let session = run.found?.session, !(await session.service.isSignedIn(since: session.generation))
            {
                throw TokenServiceError(.reset)
            }
            let response = try await session.send(run.message, with: carried, limit: limit, reporting: report)
            let answer = ProofAnswer(response, to: carried, from: run.message.url)
            if let next = try run.message.redirected(by: response) {
                run.redirects += 1
                guard run.redirects <= Message.maximumRedirects else {
                    throw DataLoadingError(
                        .redirectRefused, detail: "there were more than \(Message.maximumRedirects) redirects", response: response
                    )
                }
                run.message = next
                // A server may copy the whole query into the target's.
                if let carried {
                    run.message.url = carried.usage.url(next.url, without: carried.token.value)
                    guard !next.hasLeftOrigin || !carried.isShown(in: run.message.url) else {
                        throw DataLoadingError(.redirectRefused, detail: "its target has the token, and is of another origin")
                    }
                }
                // Another request, and the redirect may have brought a newer one.
                (run.nonce, run.repetitions) = (nil, 0)
                if next.hasLeftOrigin { run.found = nil }
                continue
            }
            let canRepeat = run.message.body?.isReplayable != false
            if let answer, answer.demandsNonce {
                run.nonce = try answer.nonce(isLast: run.repetitions == 2, canRepeat: canRepeat)
                (run.repetitions, run.earlier) = (run.repetitions + 1, carried?.secrets ?? [])
                continue
            }
            (run.nonce, run.repetitions) = (nil, 0)
            if let (token, session) = run.found, let stepUp = session.stepUp,
                let lack = response.lack(of: token, for: stepUp)
            {
                if let earlier = run.steppedUpFor {
                    if StepUpScopes.covers(earlier, lack.text) { stepUp.noteVain(lack.text, in: session.service) }
                } else if canRepeat {
                    run.steppedUpFor = lack.text
                    var trial = run
                    // No other token is loaded for one that isn't installed.
                    trial.isSecondAttempt = true
                    let send = { (wider: AccessToken) in
                        trial.found = (wider, session)
                        return try await self.response(to: trial, limit: limit, reporting: report)
                    }
                    switch try await gain(
                        by: stepUp, lack, insteadOf: token, in: session, after: response, hiding: carried, sending: send)
                    {
                    case .token(let wider): run.found = (wider, session)
                    case .response(let response): return response
                    case .nothing:
                        throw response.failure(
                            lack.code, detail: "the step-up's token doesn't meet it either", hiding: carried)
                    }
                    continue
                }
            }
            guard let (token, session) = run.found, response.isRefusal(of: token, in: session.usage) else {
                try response.validate(hiding: carried)
                return response
            }
            guard !run.isSecondAttempt, canRepeat else {
                try await session.service.noteRefusal(of: token)
                throw response.failure(
                    run.isSecondAttempt ? .unauthorized : .bodyNotReplayable, isSecondRefusal: run.isSecondAttempt,
                    hiding: carried)
            }
            run.found = (try await session.token(insteadOf: token), session)
            run.isSecondAttempt = true
        }
    }

    /// Lets a step-up get a token with a missing scope.
    private func gain(
        by stepUp: StepUp, _ lack: StepUp.Lack, insteadOf token: AccessToken, in session: OriginTokens.Session,
        after response: Response, hiding carried: CarriedToken?, sending send: (AccessToken) async throws -> Response
    ) async throws -> StepUp.Gain {
        do {
            return try await stepUp.gain(lack, insteadOf: token, in: session, sending: send)
        } catch {
            if error is CancellationError || Task.isCancelled { throw CancellationError() }
            // The session is over, or the server's answer to the new token.
            if error is TokenServiceError || error is DataLoadingError { throw error }
            throw response.failure(lack.code, detail: "the step-up failed", underlying: error, hiding: carried)
        }
    }

    /// Returns the authentication of a message: the token and, if the token is bound to a key, a proof.
    private func carried(
        _ found: (token: AccessToken, session: OriginTokens.Session)?, by message: Message, nonce: String?
    ) async throws -> CarriedToken? {
        guard let (token, session) = found else { return nil }
        guard token.isOfDPoP, let maker = session.proof else { return CarriedToken(token: token, usage: session.usage) }
        let proof: RequestProof
        do {
            proof = try await maker.proof(method: message.method, url: message.url, accessToken: token.value, nonce: nonce)
        } catch {
            if error is CancellationError || Task.isCancelled { throw CancellationError() }
            // The text of the program's own error may contain a secret.
            let reason =
                error is any TokenLoadFailure ? "\(error)" : "signing failed with an error of type \(type(of: error))."
            throw DataLoadingError(.proofUnavailable, detail: String(reason.dropLast()), underlying: error)
        }
        guard proof.headers.allSatisfy({ HTTPToken.isValid($0) && HTTPToken.isHeaderValue($1) && !HTTPToken.isOfConnection($0) })
        else { throw DataLoadingError(.proofUnavailable, detail: "it has a header that can't be sent") }
        return CarriedToken(token: token, usage: session.usage, maker: maker, proof: proof)
    }
}

extension Response {
    /// What a step-up can get because the response says that a token lacks it; `nil`: nothing.
    fileprivate func lack(of token: AccessToken, for stepUp: StepUp) -> StepUp.Lack? {
        if status == 401 { return stepUp.demand(of: challenge(for: token)) }
        guard status == 403 else { return nil }
        if let challenge = challenge(for: token) {
            return challenge["error"] == "insufficient_scope" ? stepUp.wanted(challenge["scope"]).map { .scope($0) } : nil
        }
        guard stepUp.readsBody, answer.members("error").contains("insufficient_scope") else { return nil }
        let scopes = answer.members("scope")
        return stepUp.wanted(scopes.isEmpty ? nil : scopes.joined(separator: " ")).map { .scope($0) }
    }
}
