import AccessTokens
import AccessTokensSharing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One operation of etcd's HTTP gateway: what to send, and how to read the answer.
///
/// The gateway writes bytes in Base64 and 64-bit integers as strings, and omits values that are zero, `false` or empty.
///
/// Source: etcd's API reference, `etcdserverpb/rpc.proto`; protobuf's JSON mapping; measured with etcd 3.4.23.
struct EtcdCall<Value: Sendable>: Sendable {
    let path: String
    let body: Data
    /// Whether the record may have been replaced when the answer is lost.
    let mayWrite: Bool
    let read: @Sendable (Data) throws(EtcdError) -> Value
}

extension EtcdCall where Value == SharedRecord? {
    /// Reads the key.
    ///
    /// The read is linearizable because it doesn't set `serializable`, which would let a member return its own data, however old.
    static func load(_ key: Data) -> EtcdCall {
        let body = #"{"key":"\#(key.base64EncodedString())"}"#
        return EtcdCall(path: "v3/kv/range", body: Data(body.utf8), mayWrite: false) { answer throws(EtcdError) in
            try EtcdAnswer.decode(EtcdAnswer.Range.self, from: answer).record(of: key)
        }
    }
}

extension EtcdCall where Value == SharedRecord.Swap {
    /// Replaces the value of the key in one transaction if its revision is still the given one, or if it has none and the
    /// revision is 0.
    ///
    /// Otherwise the same transaction reads the key, so that a conflict needs no second request. A key that was never written, or
    /// was deleted, has the modification revision 0.
    static func swap(_ bytes: Data, ifAt revision: Int64, of key: Data) -> EtcdCall {
        let name = key.base64EncodedString()
        let body = """
            {"compare":[{"key":"\(name)","target":"MOD","result":"EQUAL","mod_revision":"\(revision)"}],\
            "success":[{"request_put":{"key":"\(name)","value":"\(bytes.base64EncodedString())"}}],\
            "failure":[{"request_range":{"key":"\(name)"}}]}
            """
        return EtcdCall(path: "v3/kv/txn", body: Data(body.utf8), mayWrite: true) { answer throws(EtcdError) in
            try EtcdAnswer.decode(EtcdAnswer.Transaction.self, from: answer).swap(ifAt: revision, of: key)
        }
    }
}

extension EtcdCall where Value == String {
    /// Fetches an authentication token.
    static func authenticate(_ user: EtcdUser) throws(EtcdError) -> EtcdCall {
        guard let body = try? JSONEncoder().encode(["name": user.name, "password": user.password]) else {
            throw EtcdError(.invalidConfiguration, "the user's name or password can't be written as JSON")
        }
        return EtcdCall(path: "v3/auth/authenticate", body: body, mayWrite: false) { answer throws(EtcdError) in
            try EtcdAnswer.decode(EtcdAnswer.Authentication.self, from: answer).validToken()
        }
    }
}
