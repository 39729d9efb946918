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

    /// Takes out the additional headers that may be secrets, which must not follow a redirect to another origin.
    ///
    /// - Returns: Those that a request's own origin gets; ones that authenticate it belong into the request.
    func takeHeaders() -> [String: String] {
        var taken: [String: String] = [:]
        httpAdditionalHeaders = httpAdditionalHeaders?.filter { name, value in
            guard let name = name as? String, !Message.harmlessHeaders.contains(name.lowercased()) else { return true }
            if !["authorization", "proxy-authorization", "cookie"].contains(name.lowercased()) { taken[name] = "\(value)" }
            return false
        }
        return taken
    }
}
