package import AccessTokensHTTP

/// The transport that needs no other package: `URLSession` on Apple platforms, a socket without TLS on Linux.
///
/// A value without state: any number of sends run independently, each once, over its own connection, without redirects,
/// cookies or a cache.
///
/// **On Linux** it refuses `https`. etcd's gateway adds a trailer to every error (“invalid auth token”, “no leader”), and such an
/// answer crashes a process that uses `URLSession` there (Swift 6.3); nor does `URLSession` accept a private authority there.
package struct SystemEtcdTransport: TokenTransport {
    /// Creates a transport.
    package init() {}

    @concurrent package func send(_ request: TransportRequest) async throws -> TransportResponse {
        #if URLSession && canImport(FoundationNetworking)
        guard Origin(request.url)?.scheme == "http" else {
            throw TransportError.invalidConfiguration(
                "URLSession on Linux crashes on etcd's errors, so TLS needs a transport over another HTTP client")
        }
        return try await PlainExchange.answer(to: request)
        #else
        return try await URLSessionTransport().send(request)
        #endif
    }
}
