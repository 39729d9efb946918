#if URLSession
#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif

/// How a session answers a server that asks for credentials.
///
/// On Linux it never does: the 401 is the exchange's answer, and the system alone judges certificates.
package enum ChallengePolicy: Sendable {
    /// The system judges certificates. Any other challenge is the exchange's answer.
    case returnToCaller
    /// The delegate decides, if it implements that; otherwise the system, also with credentials that it has stored.
    case ask((any URLSessionDelegate)?)
}
#endif
