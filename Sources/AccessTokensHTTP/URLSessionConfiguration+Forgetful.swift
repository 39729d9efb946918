#if URLSession
#if canImport(FoundationNetworking)
import Foundation
package import FoundationNetworking
#else
package import Foundation
#endif

extension URLSessionConfiguration {
    /// A configuration that keeps nothing; its own time limits are only a fallback for the exchange's.
    package static func forgetful(_ timeLimit: Duration) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.httpCookieStorage = nil
        configuration.httpCookieAcceptPolicy = .never
        configuration.httpShouldSetCookies = false
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.timeoutIntervalForRequest = timeLimit / .seconds(1) + 1
        configuration.timeoutIntervalForResource = timeLimit / .seconds(1) + 1
        return configuration
    }
}
#endif
