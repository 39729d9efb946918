import AccessTokens
import AccessTokensOAuth
import DataLoading
import Foundation

private let logIn = "Run “\(Settings.name) login”."

/// What to tell users who aren't developers, for each remedy.
private let sentences: [TokenServiceError.Remedy: String] = [
    .retry:
        "The service can't be reached at the moment. Try again later.",
    .signIn: "You are not signed in any more. \(logIn)",
    .signInOrRegistration:
        "You may have to sign in again. \(logIn) If that doesn't help,"
        + " ask for help with the code below.",
    .clientRegistration:
        "The service doesn't accept this program. Ask for help with the"
        + " code below.",
    .programChange:
        "This version of the program doesn't work any more. Install a"
        + " newer one, or ask for help with the code below.",
]

/// Returns what the user of the program can do about an error, with a
/// code for the people who help.
func advice(on error: any Error) -> String {
    var lines: [String?]
    switch error {
    case is CancellationError:
        return "Interrupted."
    case let error as TokenServiceError where error.code == .storeFailed:
        lines = [
            "Your session can't be read or saved on this computer:",
            error.underlying.map { "\($0)" },
        ]
    case let error as any TokenLoadFailure:
        lines = [
            sentences[error.remedy], error.logCode.map { "Code: \($0)" },
        ]
        if let date = (error as? TokenServiceError)?.retryAt {
            lines.append("The next attempt is possible at \(date).")
        }
    case let error as DataLoadingError where error.code == .unauthorized:
        lines = [sentences[.signInOrRegistration], "Code: \(error.code)"]
    case let error as DataLoadingError
    where [.connectionFailed, .timedOut].contains(error.code)
        || error.response.map { $0.status >= 500 } ?? false:
        lines = [sentences[.retry], "Code: \(error.code)"]
    default:
        lines = ["Something went wrong: \(error)"]
    }
    return lines.compactMap(\.self).joined(separator: "\n")
}
