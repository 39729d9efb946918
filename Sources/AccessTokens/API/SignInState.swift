public import TokenServiceConcurrency

/// Whether a user is signed in, as a ``TokenService`` and its store know it.
///
/// ```swift
/// switch await tokens.signInState().code {
/// case .signedOut: showSignIn()
/// case .unknown: showLockedScreen()  // ask again when the store can be read
/// default: showMovies()
/// }
/// ```
///
/// The answer is about what the device has. Only the server knows whether it still accepts the grant; a refusal ends the state
/// ``Code/signedIn``. A loader with its own credentials, such as those of `client_credentials`, can load in any state.
public struct SignInState: Sendable {
    /// The answer, as a value to compare.
    public struct Code: Sendable, Hashable, Described {
        /// There is a valid token, which callers get at once.
        public static let validToken = Code(text: "validToken")
        /// There is no valid token, but a refresh token to load one with, or a token that is being saved.
        public static let signedIn = Code(text: "signedIn")
        /// There is neither a valid token nor a refresh token, or the server has refused the refresh token.
        ///
        /// Then ``SignInState/error`` is the refusal.
        public static let signedOut = Code(text: "signedOut")
        /// The store can't be read now, or hasn't been asked; ``SignInState/error`` says why.
        public static let unknown = Code(text: "unknown")

        package let text: String
    }

    /// The answer.
    public let code: Code

    /// Why the store can't be read, or why the refresh token is of no use; else `nil`.
    public let error: TokenServiceError?

    package init(_ code: Code, error: TokenServiceError? = nil) {
        self.code = code
        self.error = error
    }
}

/// The description shows no token, since an error shows none.
extension SignInState: Described {
    package var text: String { error.map { "\(code): \($0)" } ?? "\(code)" }
}
