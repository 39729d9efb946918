import AccessTokensHTTP

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension EtcdAnswer {
    /// The gRPC codes that matter here.
    private enum GRPC {
        static let invalidArgument = 3, permissionDenied = 7, failedPrecondition = 9, unauthenticated = 16
        /// Cancelled, unknown, deadline exceeded, aborted, internal, unavailable, data loss.
        static let transient: Set = [1, 2, 4, 10, 13, 14, 15]
        /// The codes that rule out a write.
        ///
        /// Code 8, “database space exceeded”, is not among them: etcd executes the write that uses up the space, and still
        /// reports this error (`apply.go`, `quotaApplierV3`).
        static let definite: Set = [3, 5, 7, 9, 12, 16]
    }

    /// Words in etcd's texts that, like code 16, mean that a newer token is needed.
    ///
    /// The token has expired; the request had none, since authentication was enabled only afterwards; or users or roles have
    /// changed since the token was issued.
    private static let staleTokenWords = ["invalid auth token", "user name is empty", "revision of auth store is old"]

    /// Returns why the response is not a result.
    ///
    /// - Parameter secrets: The secrets in the request, which no text may show.
    /// - Returns: The error, and whether a new authentication token may help.
    static func refusal(in response: TransportResponse, hiding secrets: [String]) -> (error: EtcdError, needsToken: Bool) {
        let status = response.status, refusal = try? JSONDecoder().decode(Refusal.self, from: response.body)
        let words = refusal?.message ?? refusal?.error ?? ""
        let needsToken =
            refusal?.code == GRPC.unauthenticated || status == 401 || staleTokenWords.contains { words.contains($0) }
        let code: EtcdError.Code =
            if needsToken {
                .authenticationFailed
            } else if let grpc = refusal?.code {
                grpc == GRPC.permissionDenied ? .permissionDenied : GRPC.transient.contains(grpc) ? .unavailable : .refused
            } else {
                status >= 500 || status == 408 || status == 429 ? .unavailable : .refused
            }
        let text = words.isEmpty ? "status \(status)" : "status \(status), \"\(ServerText.safe(words, hiding: secrets))\""
        var error = EtcdError(code, text, status: status)
        error.isOutcomeUnknown =
            !needsToken && !(refusal?.code.map(GRPC.definite.contains) ?? [400, 403, 404, 405, 412, 413].contains(status))
        return (error, needsToken)
    }
}
