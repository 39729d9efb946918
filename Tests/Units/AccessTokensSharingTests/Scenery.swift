import AccessTokens
import AccessTokensTesting

/// Something that a test expects did not happen.
struct Missing: Error {}

extension Stage.Player {
    /// The service's error code, if the caller got one.
    var code: TokenServiceError.Code? { (error as? TokenServiceError)?.code }
}

extension AccessToken {
    static func hour(_ name: String) -> AccessToken { AccessToken(name, lifetime: .seconds(3600)) }

    /// The same with a refresh token.
    static func granted(_ name: String, by grant: String? = nil) -> AccessToken {
        AccessToken(name, lifetime: .seconds(3600), refreshToken: grant ?? "\(name)'s grant")
    }
}
