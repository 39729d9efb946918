import AccessTokens
import TokenServiceHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One client's view of an authorization server's endpoint: it sends a form and reads the answer, or throws.
///
/// What the loaders of all grants and the revocation share. It never sends a request twice.
///
/// Source: RFC 6749 §3.2; RFC 7009 §2.1.
struct TokenEndpoint: Sendable {
    let url: URL
    let client: Client
    let transport: any TokenTransport
    let lifetimeWhenMissing: Duration?
    let wallClock: @Sendable () -> Date

    /// Sends a form, once, and returns what reads the answer.
    ///
    /// - Parameters:
    ///   - form: Its parameters but the client's; none empty, none repeated.
    ///   - token: The token that it is about, which no text may show either.
    @concurrent func send(
        _ form: [(name: String, value: String)], about token: AccessToken?
    ) async throws -> ResponseReader {
        let secrets = client.secrets + [token?.value, token?.refreshToken].compactMap { $0 }
        let response: TokenResponse
        try LoadTime.check()
        do {
            response = try await transport.send(request(with: form))
        } catch let error as OAuthError {
            throw error
        } catch {
            if error is NotSent { throw error }
            if error is CancellationError || Task.isCancelled { throw CancellationError() }
            var failure = OAuthError(
                .connectionFailed, detail: ServerText.safe(String(describing: error), hiding: secrets))
            failure.underlying = error
            throw failure
        }
        return ResponseReader(
            response: response, secrets: secrets, lifetimeWhenMissing: lifetimeWhenMissing, now: wallClock())
    }

    private func request(with form: [(name: String, value: String)]) -> TokenRequest {
        let (headers, parameters) = client.credentials()
        let fixed = ["Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"]
        return TokenRequest(
            url: url, headers: fixed.merging(headers) { $1 }, body: Data(FormEncoding.form(form + parameters).utf8))
    }
}
