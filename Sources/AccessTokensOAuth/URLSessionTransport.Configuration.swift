import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLRequest {
    init(_ request: TokenRequest) {
        self.init(url: request.url)
        httpMethod = "POST"
        httpBody = request.body
        allHTTPHeaderFields = request.headers
        httpShouldHandleCookies = false
    }
}

extension URLSessionConfiguration {
    /// A configuration that keeps nothing; its own time limits are but a second line behind the transport's.
    static func forgetful(_ timeLimit: Duration) -> URLSessionConfiguration {
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
