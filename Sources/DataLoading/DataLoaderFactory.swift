public import Dispatch
import TokenServiceConcurrency

#if canImport(FoundationNetworking)
public import FoundationNetworking
#else
public import Foundation
#endif

/// Creates loaders that share their dependencies but no state.
///
/// ```swift
/// let factory = DataLoaderFactory(session: .shared, tokens: try OriginTokens(tokens, for: [apiURL]))
/// let screen = MovieScreen(loader: factory.makeLoader(queue: .main))
/// ```
///
/// Pass the factory from screen to screen, and let each create its own loader. It is a value: copies share the same session.
///
/// On Linux some responses crash the process inside Foundation (Swift 6.3): a connection closed between two lines of the header,
/// a chunked response with a trailer, a redirect to `//[::1]/` or to a host with percent-encoded characters, a `Content-Length`
/// near 2⁶³. Three things block all sessions of the process: a response with tens of thousands of header lines, for seconds; a
/// request that is given up while its host's name is looked up, until the lookup has ended; and the long body of a redirect,
/// while the server sends it. Send requests to servers that may do that with an HTTP client of your own, which gets its tokens
/// from the `TokenService`.
public struct DataLoaderFactory: Sendable {
    let runner: RequestRunner

    /// Creates a factory.
    ///
    /// - Parameters:
    ///   - session: The model for the loaders' session. That session gets this one's configuration (time limits, connections,
    ///     headers) and, on Apple platforms, asks its delegate which servers to trust. The given session is neither used nor
    ///     changed. Its cookies are not copied, nor are the headers `Authorization`, `Proxy-Authorization` and `Cookie` of its
    ///     `httpAdditionalHeaders`, which would go to every server: use `tokens`, or the request, for what authenticates a
    ///     request.
    ///   - cache: The session's cache; `nil` for the cache of the given session's configuration. It may hold a user's responses:
    ///     empty it at sign-out. Not used on Linux, where `URLSession` (Swift 6.3) neither reads nor fills a cache.
    ///   - cookies: Keeps the servers' cookies; `nil` to keep and send none. The shared storage outlives the user and the
    ///     process: use one of your own, and empty it at sign-out. On Linux a cookie goes to every path of its host, and a
    ///     `Secure` one is also sent without TLS.
    ///   - tokens: The tokens that requests carry, bound to their origins; `nil` for none.
    public init(
        session: URLSession = .shared, cache: URLCache? = nil, cookies: HTTPCookieStorage? = nil, tokens: OriginTokens? = nil
    ) {
        runner = RequestRunner(session: LoadingSession(like: session, cache: cache, cookies: cookies), tokens: tokens)
    }

    /// Creates a loader for one owner.
    ///
    /// - Parameter queue: The queue for completion handlers, called one at a time if it is serial, as the default is.
    public func makeLoader(queue: DispatchQueue = DispatchQueue(label: "DataLoader")) -> DataLoader {
        DataLoader(runner, queue: queue)
    }
}

/// The description leaves out the session, which holds the requests in flight with their tokens.
extension DataLoaderFactory: Redacted {
    /// Which origins get tokens.
    package var text: String { "DataLoaderFactory(\(runner.tokens.map { "\($0)" } ?? "no tokens"))" }
}
