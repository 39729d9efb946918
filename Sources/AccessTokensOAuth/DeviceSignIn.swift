import AccessTokens
import TokenServiceConcurrency
import AccessTokensHTTP

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A sign-in on another device, for tools and televisions: the user enters a code there while this program polls the server.
///
/// ```swift
/// let signIn = try await DeviceSignIn(client, deviceAuthorizationURL: url, scope: "api")
/// print("Open \(signIn.verificationURI) and enter \(signIn.userCode)")
/// await tokens.replace(with: try await signIn.token().token)
/// ```
///
/// A value for one sign-in. No description or dump shows a code.
///
/// Source: RFC 8628.
public struct DeviceSignIn: Sendable {
    /// The code that the user enters; show it to the user and to no log.
    public let userCode: String

    /// Where the user enters it.
    public let verificationURI: String

    /// The same with the code in it, for a QR code; `nil` if the server offers none.
    public let verificationURIComplete: String?

    /// How long the user has to sign in, counted from the request.
    public let lifetime: Duration

    private let client: OAuthClient
    private let deviceCode: String
    private let interval: Duration
    /// The time since the request.
    private let elapsed: @Sendable () -> Duration
    private let sleep: @Sendable (Duration) async throws -> Void

    /// Gets the codes from the server with one request.
    ///
    /// - Parameters:
    ///   - client: The client that the user signs in to.
    ///   - deviceAuthorizationURL: The device authorization endpoint: `https`, or `http` to a loopback address.
    ///   - scope: The scopes to ask for, separated by spaces.
    ///   - additionalParameters: More parameters, such as `resource`.
    ///   - clock: The clock that measures the pauses and the lifetime.
    /// - Throws: ``OAuthError``, or `CancellationError` when its task is cancelled.
    public init(
        _ client: OAuthClient, deviceAuthorizationURL: URL, scope: String? = nil, additionalParameters: Form = [:],
        clock: some Clock<Duration> = ContinuousClock()
    ) async throws {
        let endpoint = try TokenEndpoint("device authorization URL", deviceAuthorizationURL)
        try endpoint.check(additional: additionalParameters)
        var form: Form = [:]
        form.add("scope", ifAny: scope)
        form.add(additionalParameters)
        let start = clock.now
        let reader = try await client.send(form, to: endpoint)
        let members = try reader.readableMembers()
        func required(_ names: String...) throws(OAuthError) -> String {
            let text = names.lazy.compactMap { members[$0] }.first
            // The text is shown to the user, maybe in a terminal.
            guard let text, text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
                throw reader.failure(.unreadableResponse("\(names[0]) is missing or has an invalid value"))
            }
            return text
        }
        guard let lifetime = members.seconds("expires_in") else {
            throw reader.failure(.unreadableResponse("expires_in must be a non-negative number of seconds"))
        }
        deviceCode = try required("device_code")
        userCode = try required("user_code")
        // Google uses another name.
        verificationURI = try required("verification_uri", "verification_url")
        verificationURIComplete = try? required("verification_uri_complete")
        // RFC 8628 §3.2.
        let interval = members.seconds("interval") ?? .seconds(5)
        self.interval = max(interval, .seconds(1))
        self.lifetime = lifetime
        self.client = client
        elapsed = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(for: $0) }
    }

    /// Waits until the user has signed in, and returns the token.
    ///
    /// It polls at the server's interval, which each `slow_down` lengthens by 5 s. After a time-out, a broken connection or a
    /// busy server the pauses grow until the server answers again, and `Retry-After` is honoured. Once the server has answered as
    /// RFC 8628 says, a page or a redirect from something else, such as a captive portal, doesn't end the wait either. If the code
    /// expires before the first interval ends, it polls once: a second before the expiry, or after half of the remaining time.
    ///
    /// - Throws: ``OAuthError`` with the remedy `signIn` if the user refuses (`access_denied`) or doesn't sign in within the
    ///   lifetime (`expired_token`, or the code `signInExpired`, which says if the server's last answer was another one); a
    ///   `SalvagedGrant` as ``OAuthClient/token(for:replacing:)``; or
    ///   `CancellationError` promptly when its task is cancelled.
    ///
    /// Source: RFC 8628 §3.4, §3.5.
    @concurrent public func token() async throws -> TokenResponse {
        let grant = Grant(type: Grant.deviceType, ["device_code": deviceCode])
        var interval = interval
        let rest = lifetime - elapsed()
        // The interval separates two requests. The first request must precede the code's expiry.
        var pause = min(interval, rest - min(.seconds(1), rest / 2))
        var isKnown = false, trouble: (any TokenLoadFailure)?
        while true {
            let remaining = lifetime - elapsed()
            if remaining > .zero { try await sleep(min(pause, remaining)) }
            try Task.checkCancellation()
            guard elapsed() < lifetime else { throw expired(after: trouble) }
            do {
                return try await client.token(for: grant)
            } catch let failure as any TokenLoadFailure {
                let error = failure as? OAuthError
                if error?.error == "slow_down" { interval += .seconds(5) }
                let hasAnswered = error?.error.map(Grant.pausesOfDevices.contains) ?? false
                guard hasAnswered || Self.isTemporary(failure) || isKnown && error?.isOAuth == false else { throw failure }
                isKnown = isKnown || hasAnswered
                trouble = hasAnswered ? nil : failure
                pause = hasAnswered ? interval : min(pause * 2, max(interval, .seconds(60)))
                pause = max(pause, failure.retryAfter ?? .zero)
            }
        }
    }

    /// The error of a code that has ended, with what went wrong last, if anything but the wait did.
    private func expired(after trouble: (any TokenLoadFailure)?) -> OAuthError {
        var error = OAuthError(.signInExpired)
        error.status = (trouble as? OAuthError)?.status
        error.underlying = trouble
        error.note = trouble.map { "The last attempt to ask for the token failed: \($0)" }
        return error
    }

    /// Whether the error is temporary: of the server, of the way to it, or of the client's credentials.
    private static func isTemporary(_ failure: any TokenLoadFailure) -> Bool {
        // The code of an answer with a refresh token is spent.
        guard let error = failure as? OAuthError else { return failure.remedy == .retry && !(failure is SalvagedGrant) }
        return switch error.code {
        case .timedOut, .connectionFailed, .credentialsUnavailable: true
        case .refused: error.isPassing
        default: false
        }
    }
}

extension DeviceSignIn: Redacted {
    /// The client and the server, without a code.
    package var text: String { "DeviceSignIn(\(client.place))" }
}
