import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

extension Exhibit {
    /// Who is signed in at the server, which decides whose token a load brings.
    final class Session: Sendable {
        private let user: Lock<String?>

        init(of user: String) {
            self.user = Lock(user)
        }

        /// Ends the session; the next one is another user's, or nobody's.
        func end(thenBegin user: String? = nil) {
            self.user.withLock { $0 = user }
        }

        func loader(_ simulation: Simulation) -> Loader {
            Loader(
                simulation,
                answer: { number, _ in
                    guard let user = self.user.withLock({ $0 }) else { throw ScriptedFailure.grantRefused }
                    return AccessToken("\(user)'s token \(number)", lifetime: .seconds(3600))
                })
        }
    }
}
