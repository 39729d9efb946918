import AccessTokensHTTP
import AccessTokensOAuth
import Foundation

/// A transport that answers every request with a given response, by default an OAuth token, and remembers the forms.
struct AnsweringTransport: TokenTransport {
    let forms = GuideLog()
    var answer: @Sendable (_ form: String) -> (status: Int, body: String) = { _ in
        (200, #"{"access_token": "a", "token_type": "Bearer", "expires_in": 3600}"#)
    }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        let form = String(decoding: request.body, as: UTF8.self)
        forms.add(form)
        let (status, body) = answer(form)
        return TransportResponse(status: status, headers: ["Content-Type": "application/json"], body: Data(body.utf8))
    }
}
