public import Dispatch

#if canImport(FoundationNetworking)
public import FoundationNetworking
#else
public import Foundation
#endif

/// Makes loaders that share their dependencies, and no state.
///
/// ```swift
/// let factory = DataLoaderFactory(session: .shared, tokens: try OriginTokens(tokens, for: [apiURL]))
/// let screen = MovieScreen(loader: factory.makeLoader(queue: .main))
/// ```
///
/// Hand the factory from screen to screen, and let each make a loader of its own. A value: copies share the same session.
///
/// On Linux some answers end the process inside Foundation (Swift 6.3): a connection closed between two lines of the header, a
/// chunked answer with a trailer, a redirect to `//[::1]/` or to a host with percent-encoded characters, a `Content-Length` near
/// 2⁶³. Three things hold up all sessions of the process: an answer with tens of thousands of header lines, for seconds; a request that
/// is given up while its host's name is looked up, until the lookup has ended; and the long body of a redirect, while the server sends
/// it. Send requests to servers that may do that with an HTTP client of your own, which takes its tokens from the `TokenService`.
public struct DataLoaderFactory: Sendable {
    let runner: RequestRunner

    /// Creates a factory.
    ///
    /// - Parameters:
    ///   - session: What the loaders' session is like: it gets this one's configuration (time limits, connections, headers) and,
    ///     on Apple platforms, asks its delegate which servers to trust. The session itself is neither used nor changed. Not taken
    ///     over are its cookies, and the headers `Authorization`, `Proxy-Authorization` and `Cookie` of its
    ///     `httpAdditionalHeaders`, which would go to every server: what authenticates a request belongs to `tokens`, or into
    ///     the request.
    ///   - cache: The session's cache; `nil`: that of the given session's configuration. It may hold a user's answers: empty it
    ///     at sign-out. Not used on Linux, where `URLSession` (Swift 6.3) neither reads nor fills a cache.
    ///   - cookies: Where servers' cookies are kept and sent from; `nil`: nowhere. The shared storage outlives the user and the
    ///     process: give one of your own, and empty it at sign-out. On Linux a cookie goes to every path of its host, a `Secure`
    ///     one without TLS too.
    ///   - tokens: The tokens that requests carry, bound to the origins that they are for; `nil`: none.
    public init(
        session: URLSession = .shared, cache: URLCache? = nil, cookies: HTTPCookieStorage? = nil, tokens: OriginTokens? = nil
    ) {
        runner = RequestRunner(session: SharedSession(like: session, cache: cache, cookies: cookies), tokens: tokens)
    }

    /// Makes a loader for one owner.
    ///
    /// - Parameter queue: Where completion handlers are called, one at a time if it is serial; a queue of its own unless given.
    public func makeLoader(queue: DispatchQueue = DispatchQueue(label: "DataLoader")) -> DataLoader {
        DataLoader(runner, queue: queue)
    }
}
