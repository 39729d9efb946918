public import AccessTokensHTTP

/// The transport that needs no other package: `URLSession` on Apple platforms, a socket without TLS on Linux.
///
/// A value without state: any number of sends run independently, each once, over a connection of its own, without redirects,
/// cookies or a cache.
///
/// **On Linux** it refuses `https`. etcd's gateway adds a trailer to every error (“invalid auth token”, “no leader”),
/// and such an answer ends a process that uses `URLSession` there (Swift 6.3); nor does `URLSession` accept a private authority
/// there. For TLS, bring a `TokenTransport` over an HTTP client of your own, or reach etcd through a proxy on this machine that
/// speaks TLS to it. Without TLS it uses no proxy, whatever the environment says.
///
/// **On Apple platforms** the system judges certificates. Client certificates aren't sent; use a name and a password.
///
/// A program that is built without the package's trait `URLSession` must bring a `TokenTransport`.
public struct SystemEtcdTransport: TokenTransport {
    /// Creates a transport.
    public init() {}

    /// Sends a request, once, and returns the answer, also when that is a redirect.
    ///
    /// - Throws: `TransportError`, `invalidConfiguration` for TLS on Linux, or `CancellationError` promptly when its task is
    ///   cancelled.
    @concurrent public func send(_ request: TransportRequest) async throws -> TransportResponse {
        #if URLSession && canImport(FoundationNetworking)
        guard Origin(request.url)?.scheme == "http" else {
            throw TransportError.invalidConfiguration(
                "URLSession on Linux does not survive etcd's errors, so TLS needs a transport over another HTTP client")
        }
        return try await PlainExchange.answer(to: request)
        #else
        return try await URLSessionTransport().send(request)
        #endif
    }
}
