import AccessTokensHTTP
import AccessTokensEtcd
import Foundation
import TokenServiceConcurrency

/// The gateway of an etcd in memory, as far as the store uses it, with authentication and lost answers.
final class FakeEtcd: TokenTransport {
    struct State {
        var revision = 1
        var values: [String: (value: String, revision: Int)] = [:]
        /// The tokens that are valid; `nil`: authentication is not enabled.
        var tokens: Set<String>?
        var authentications = 0
        var requests = 0
        /// Every n-th answer is lost; 0: none.
        var loses = 0
    }

    let state = Lock(State())

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        let body = try JSONSerialization.jsonObject(with: request.body) as? [String: Any] ?? [:]
        let (answer, isLost) = state.withLock { state in
            state.requests += 1
            let answer = state.answer(request.url.lastPathComponent, body, token: request.headers["Authorization"])
            return (answer, state.loses > 0 && state.requests % state.loses == 0)
        }
        await Task.yield()
        if isLost { throw URLError(.networkConnectionLost) }
        return answer
    }
}

extension FakeEtcd.State {
    fileprivate mutating func answer(_ operation: String, _ body: [String: Any], token: String?) -> TransportResponse {
        if operation == "authenticate" {
            guard body["password"] as? String == EtcdTokenStore.password else {
                return .refused(400, 3, "authentication failed, invalid user ID or password")
            }
            authentications += 1
            tokens?.insert("token-\(authentications).\(revision)")
            return .token("token-\(authentications).\(revision)")
        }
        if let tokens {
            guard let token else { return .refused(400, 3, "user name is empty") }
            guard tokens.contains(token) else { return .refused(401, 16, "invalid auth token") }
        }
        return operation == "txn" ? transact(body) : TransportResponse(range(body["key"] as? String ?? ""))
    }

    private func range(_ key: String) -> String {
        guard let (value, revision) = values[key] else { return #"{"header":{"revision":"\#(self.revision)"}}"# }
        // An empty value is omitted, like every zero.
        let member = value.isEmpty ? "" : #","value":"\#(value)""#
        return
            #"{"header":{"revision":"\#(self.revision)"},"kvs":[{"key":"\#(key)","mod_revision":"\#(revision)"\#(member)}],"count":"1"}"#
    }

    private mutating func transact(_ body: [String: Any]) -> TransportResponse {
        func first(_ name: String) -> [String: Any] { (body[name] as? [[String: Any]])?.first ?? [:] }
        let compare = first("compare"), put = first("success")["request_put"] as? [String: Any] ?? [:]
        guard let key = compare["key"] as? String, compare["target"] as? String == "MOD", compare["result"] as? String == "EQUAL",
            key == put["key"] as? String, key == (first("failure")["request_range"] as? [String: Any])?["key"] as? String
        else { return .refused(400, 3, "not such a transaction") }
        guard compare["mod_revision"] as? String == "\(values[key]?.revision ?? 0)" else {
            return TransportResponse(#"{"header":{"revision":"\#(revision)"},"responses":[{"response_range":\#(range(key))}]}"#)
        }
        revision += 1
        values[key] = (put["value"] as? String ?? "", revision)
        return TransportResponse(#"{"header":{"revision":"\#(revision)"},"succeeded":true,"responses":[{"response_put":{}}]}"#)
    }
}
