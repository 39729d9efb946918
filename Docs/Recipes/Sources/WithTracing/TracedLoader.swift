import AccessTokens
import Tracing

/// Gives each load a span of its own.
struct TracedLoader<Base: TokenLoader>: TokenLoader {
    let base: Base

    var isRepeatable: Bool { base.isRepeatable }

    @concurrent func loadToken(
        replacing previous: AccessToken?
    ) async throws -> AccessToken {
        try await withSpan("access_token.load", ofKind: .client) { span in
            do {
                return try await base.loadToken(replacing: previous)
            } catch {
                let code = (error as? any TokenLoadFailure)?.logCode
                span.attributes["error.type"] =
                    code ?? "\(type(of: error))"
                span.setStatus(SpanStatus(code: .error))
                throw error
            }
        }
    }
}
