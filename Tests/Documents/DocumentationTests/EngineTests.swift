import AccessTokens
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Stands in for each engine: one record, changed one call at a time, with the answers that the engines document.
private final class Engine: EngineClient, DynamoDBClient {
    private struct State {
        var revision = 100
        var record: (revision: String, bytes: Data)?
    }

    private let state = Lock(State())

    /// Replaces the record if its revision is the known one; `nil`: there is none.
    private func replace(_ bytes: Data, if known: String?, revision: String? = nil) -> String? {
        state.withLock { state in
            guard state.record?.revision == known else { return nil }
            state.revision += 1
            let new = revision ?? "\(state.revision)"
            state.record = (new, bytes)
            return new
        }
    }

    private var record: (revision: String, bytes: Data)? { state.withLock { $0.record } }

    @concurrent func send(_ method: String, _ path: String, body: Data) async throws -> (status: Int, body: Data) {
        await Task.yield()
        let members = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        if path.hasPrefix("/api/v1/") { return kubernetes(method, members ?? [:]) }
        if path.hasPrefix("/v1/secret/") { return vault(method, members ?? [:]) }
        let operations = try? JSONSerialization.jsonObject(with: body) as? [[String: [String: Any]]]
        return consul(path, operations?.first?["KV"] ?? [:])
    }

    private func kubernetes(_ method: String, _ body: [String: Any]) -> (status: Int, body: Data) {
        func secret(_ revision: String, _ bytes: Data) -> Data {
            let text = bytes.base64EncodedString()
            return Data(
                #"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"r","resourceVersion":"\#(revision)"},"data":{"record":"\#(text)"}}"#
                    .utf8)
        }
        guard method != "GET" else { return record.map { (200, secret($0.revision, $0.bytes)) } ?? (404, Data("{}".utf8)) }
        let known = (body["metadata"] as? [String: Any])?["resourceVersion"] as? String
        let bytes = Data(base64Encoded: (body["data"] as? [String: String])?["record"] ?? "") ?? Data()
        guard (method == "POST") == (known == nil) else { return (422, Data()) }
        return replace(bytes, if: known).map { (201, secret($0, bytes)) } ?? (409, Data("{}".utf8))
    }

    private func vault(_ method: String, _ body: [String: Any]) -> (status: Int, body: Data) {
        guard method != "GET" else {
            guard let record else { return (404, Data(#"{"errors":[]}"#.utf8)) }
            let text = record.bytes.base64EncodedString()
            return (200, Data(#"{"data":{"data":{"record":"\#(text)"},"metadata":{"version":\#(record.revision)}}}"#.utf8))
        }
        let cas = (body["options"] as? [String: Int])?["cas"] ?? 0
        let bytes = Data(base64Encoded: (body["data"] as? [String: String])?["record"] ?? "") ?? Data()
        let new = replace(bytes, if: cas == 0 ? nil : "\(cas)")
        return new.map { (200, Data(#"{"data":{"version":\#($0)}}"#.utf8)) } ?? (400, Data(#"{"errors":["check-and-set"]}"#.utf8))
    }

    private func consul(_ path: String, _ operation: [String: Any]) -> (status: Int, body: Data) {
        guard path == "/v1/txn" else {
            guard path.hasSuffix("?consistent"), let record else { return (404, Data()) }
            let text = record.bytes.base64EncodedString()
            return (200, Data(#"[{"ModifyIndex":\#(record.revision),"Value":"\#(text)"}]"#.utf8))
        }
        let index = operation["Index"] as? Int ?? 0
        let bytes = Data(base64Encoded: operation["Value"] as? String ?? "") ?? Data()
        let new = operation["Verb"] as? String == "cas" ? replace(bytes, if: index == 0 ? nil : "\(index)") : nil
        return new.map { (200, Data(#"{"Results":[{"KV":{"ModifyIndex":\#($0)}}]}"#.utf8)) } ?? (409, Data("{}".utf8))
    }

    @concurrent func item(_ key: String) async throws -> Item? { record }

    @concurrent func put(
        _ key: String, _ item: Item, condition: String, values: [String: String]
    ) async throws -> Bool {
        await Task.yield()
        return replace(item.bytes, if: condition == "revision = :known" ? values[":known"] : nil, revision: item.revision) != nil
    }
}

@Suite(.inRealTime) struct `The guide to other engines` {
    @Test(arguments: ["Kubernetes", "Vault", "Consul", "DynamoDB"])
    func `shows stores that are registers for compare and swap`(name: String) async throws {
        let engine = Engine()
        let store: any SharedTokenStore =
            switch name {
            case "Kubernetes": KubernetesStore(api: engine, namespace: "n", name: "r")
            case "Vault": VaultStore(vault: engine, path: "/v1/secret/data/r")
            case "Consul": ConsulStore(consul: engine, key: "r")
            default: DynamoDBStore(table: engine, key: "r")
            }
        let report = try await checkSharedTokenStore([store, store])
        #expect(report.failures == 0)
    }
}
