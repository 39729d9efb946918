import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Synchronization
import TestBudgets
import Testing

/// Stands in for the API of Kubernetes: one Secret, changed one call at a time, with the answers that its documentation names.
private final class Engine: EngineClient {
    private struct State {
        var revision = 100
        var record: (revision: String, bytes: Data)?
    }

    private let state = Mutex(State())

    @concurrent func send(_ method: String, _ path: String, body: Data) async throws -> (status: Int, body: Data) {
        await Task.yield()
        let record = state.withLock { $0.record }
        guard method != "GET" else { return record.map { (200, secret($0.revision, $0.bytes)) } ?? (404, Data("{}".utf8)) }
        let body = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        let known = (body?["metadata"] as? [String: Any])?["resourceVersion"] as? String
        let bytes = Data(base64Encoded: (body?["data"] as? [String: String])?["record"] ?? "") ?? Data()
        guard (method == "POST") == (known == nil) else { return (422, Data()) }
        return replace(bytes, ifAt: known).map { (201, secret($0, bytes)) } ?? (409, Data("{}".utf8))
    }

    /// Replaces the record if its revision is `known`, or if `known` is `nil` and there is no record.
    private func replace(_ bytes: Data, ifAt known: String?) -> String? {
        state.withLock { state in
            guard state.record?.revision == known else { return nil }
            state.revision += 1
            state.record = ("\(state.revision)", bytes)
            return "\(state.revision)"
        }
    }

    private func secret(_ revision: String, _ bytes: Data) -> Data {
        let text = bytes.base64EncodedString()
        return Data(
            #"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"r","resourceVersion":"\#(revision)"},"data":{"record":"\#(text)"}}"#
                .utf8)
    }
}

@Suite(.inRealTime) struct `The guide to other engines` {
    @Test func `shows a store that is a linearizable register for compare and swap`() async throws {
        let store = KubernetesStore(api: Engine(), namespace: "n", name: "r")
        let report = try await checkSharedTokenStore([store, store])
        #expect(report.failures == 0)
    }
}
