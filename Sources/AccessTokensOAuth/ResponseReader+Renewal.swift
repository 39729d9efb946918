import AccessTokens

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ResponseReader {
    /// Returns the token that an answer to a refresh token grants, with the refresh token for the next load.
    ///
    /// An answer that has replaced the refresh token must not be thrown away, whatever else is wrong with it: the server
    /// would take the old one for stolen. So a lifetime that is not a number counts as missing, and a refresh token beside an
    /// access token that cannot be used is handed over together with the reason.
    ///
    /// - Parameters:
    ///   - previous: The token whose refresh token was sent, and is kept unless a new one came (RFC 6749 §6).
    ///   - scope: What was asked for; an answer without scope grants just that (RFC 6749 §3.3).
    /// - Throws: ``OAuthError``, inside a `SalvagedGrant` if a new refresh token came.
    func renewedToken(of previous: AccessToken, scope: String?) throws -> AccessToken {
        do {
            var reader = self
            reader.response.body = TokenJSON.withoutNonNumbers(response.body)
            try reader.requireRenewal()
            let body = try reader.tokenBody()
            if case .negative = body.expiresIn { throw unusableLifetime }
            return renewedToken(body, of: previous, scope: scope)
        } catch {
            guard let refreshToken = salvagedRefreshToken(replacing: previous) else { throw error }
            throw SalvagedGrant(
                AccessToken("", lifetime: .zero, scope: previous.scope, refreshToken: refreshToken), reason: error)
        }
    }

    /// Returns the new refresh token of an answer that is otherwise useless; `nil` if there is none.
    ///
    /// Of several the last: so most parsers read a repeated name (RFC 8259 §4). A refusal with a status of its own issues nothing.
    private func salvagedRefreshToken(replacing previous: AccessToken) -> String? {
        guard (200..<300).contains(response.status) else { return nil }
        let old = previous.refreshToken ?? ""
        return TokenJSON.refreshTokens(in: response.body).last { !$0.isEmpty && !$0.utf8.elementsEqual(old.utf8) }
    }

    /// Throws the server's error if it refused the request.
    ///
    /// A refusal without an error code may be about the refresh token as well as about the client: Glewlwyd 2.7.5 refuses a
    /// used refresh token with an empty 400. To guess a sign-out at once would be worse than to ask again after the longest
    /// pause; a service takes the third such refusal in a row for one.
    private func requireRenewal() throws(OAuthError) {
        do {
            try requireSuccess()
        } catch {
            guard error.code == .refused, error.error == nil, [400, 401, 403].contains(response.status) else { throw error }
            var failure = error
            failure.remedy = .signInOrRegistration
            failure.detail =
                "Either the refresh token is no longer valid: sign in again; or the client's id, secret or authentication "
                + "method is not what the server has registered."
            throw failure
        }
    }

    private func renewedToken(_ body: TokenBody, of previous: AccessToken, scope: String?) -> AccessToken {
        let token = token(body, lifetime: body.expiresIn?.duration ?? lifetimeWhenMissing)
        return AccessToken(
            token.value, tokenType: token.tokenType, lifetime: token.lifetime, refreshIn: token.refreshIn,
            scope: token.scope ?? scope ?? previous.scope, refreshToken: token.refreshToken ?? previous.refreshToken)
    }
}

extension TokenJSON {
    /// Returns the body with `null` for each `NaN` and `Infinity` outside strings, which some servers write as numbers.
    ///
    /// Source: RFC 8259 §6, which forbids them.
    static func withoutNonNumbers(_ body: Data) -> Data {
        guard body.count <= TokenResponse.maximumBodySize else { return body }
        let words = ["-Infinity", "Infinity", "NaN"].map { Array($0.utf8) }
        let bytes = Array(body)
        var result: [UInt8] = []
        var index = 0
        var isInString = false
        while index < bytes.count {
            let byte = bytes[index]
            if !isInString, "-IN".utf8.contains(byte), let word = words.first(where: { bytes[index...].starts(with: $0) }) {
                result += Array("null".utf8)
                index += word.count
                continue
            }
            // What follows a backslash in a string does not end it.
            let end = min(index + (isInString && byte == UInt8(ascii: "\\") ? 2 : 1), bytes.count)
            if byte == UInt8(ascii: "\"") { isInString.toggle() }
            result += bytes[index..<end]
            index = end
        }
        return Data(result)
    }
}
