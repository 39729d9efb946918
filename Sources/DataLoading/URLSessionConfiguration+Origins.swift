import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLSessionConfiguration {
    /// Returns a copy without anything that would go to every server, or outlive a sign-out.
    ///
    /// It must be a copy: on Linux a session returns the same configuration object that it reads its headers and its cache from.
    ///
    /// - Parameters:
    ///   - cache: The cache to use; `nil` for the configuration's own.
    ///   - cookies: Keeps cookies, by the configuration's own policy; `nil` for none.
    func forOrigins(cache: URLCache?, cookies: HTTPCookieStorage?) -> URLSessionConfiguration {
        // A copy is of the same type; the cast can't fail.
        let configuration = copy() as? URLSessionConfiguration ?? .ephemeral
        configuration.httpAdditionalHeaders = configuration.httpAdditionalHeaders?.filter { name, _ in
            !["authorization", "proxy-authorization", "cookie"].contains((name as? String)?.lowercased())
        }
        configuration.httpCookieStorage = cookies
        if cookies == nil {
            configuration.httpCookieAcceptPolicy = .never
            configuration.httpShouldSetCookies = false
        }
        #if canImport(FoundationNetworking)
        // Querying the cache would be useless and slow: see `Transfer.end()`.
        configuration.urlCache = nil
        #else
        if let cache { configuration.urlCache = cache }
        #endif
        return configuration
    }
}
