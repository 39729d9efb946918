#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension OAuthClient {
    /// Asks the server what a token is worth, with one request.
    ///
    /// - Parameters:
    ///   - token: An access token or a refresh token, also one that another client presents.
    ///   - url: The introspection endpoint: `https`, or `http` to a loopback address.
    ///   - hint: What kind of token it is, such as `refresh_token`; `nil`: the server finds out.
    /// - Returns: The members of the answer, such as `scope` and `sub`; `nil` if the token isn't active.
    /// - Throws: ``OAuthError``, or `CancellationError` when its task is cancelled.
    ///
    /// Source: RFC 7662.
    @concurrent public func introspect(_ token: String, at url: URL, hint: String? = nil) async throws -> AnswerMembers? {
        var form: Form = ["token": token]
        form.add("token_type_hint", ifAny: hint)
        let reader = try await send(form, to: TokenEndpoint("introspection URL", url))
        let members = try reader.readableMembers()
        guard case .bool(let isActive)? = members.value("active") else {
            throw reader.failure(.unreadableResponse("active must be true or false"))
        }
        return isActive ? members : nil
    }
}
