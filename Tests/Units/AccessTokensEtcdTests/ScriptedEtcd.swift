import AccessTokensHTTP
import AccessTokens
import AccessTokensEtcd
import Foundation
import Testing
import TokenServiceConcurrency

/// A transport without a network: it records the requests and returns scripted answers.
final class ScriptedEtcd: TokenTransport {
    private let sent = Lock<[TransportRequest]>([])
    private let answer: @Sendable (TransportRequest) throws -> TransportResponse

    init(by answer: @escaping @Sendable (TransportRequest) throws -> TransportResponse) {
        self.answer = answer
    }

    /// Answers one request after the other; the last answer is repeated.
    convenience init(_ answers: @Sendable () throws -> TransportResponse...) {
        let next = Lock(0)
        self.init(by: { _ in
            let index = next.withLock { next in
                defer { next += 1 }
                return min(next, answers.count - 1)
            }
            return try answers[index]()
        })
    }

    /// Everything that was sent, in order.
    var requests: [TransportRequest] { sent.withLock { $0.map(\.self) } }

    /// The paths of what was sent, each with its host.
    var log: [String] { requests.map { "\($0.url.host ?? "")\($0.url.path)" } }

    @concurrent func send(_ request: TransportRequest) async throws -> TransportResponse {
        sent.withLock { $0.append(request) }
        return try answer(request)
    }
}

extension TransportResponse {
    init(_ status: Int, _ body: String) {
        self.init(status: status, body: Data(body.utf8))
    }

    init(_ body: String) {
        self.init(200, body)
    }

    /// The answer of etcd 3.4.23 to a read of the key `k`: the value `v1` at revision 2.
    static let record = TransportResponse(
        #"{"header":{"cluster_id":"3249","member_id":"331","revision":"9","raft_term":"2"},"kvs":[{"key":"aw==","#
            + #""create_revision":"2","mod_revision":"7","version":"1","value":"djE="}],"count":"1"}"#)
    static let none = TransportResponse(#"{"header":{"cluster_id":"3249","member_id":"331","revision":"9","raft_term":"2"}}"#)
    static let done = TransportResponse(
        #"{"header":{"cluster_id":"3249","revision":"10"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"10"}}}]}"#
    )
    static let conflict = TransportResponse(
        #"{"header":{"revision":"9"},"responses":[{"response_range":{"header":{"revision":"9"},"kvs":[{"key":"aw==","#
            + #""create_revision":"2","mod_revision":"7","version":"1","value":"djE="}],"count":"1"}}]}"#)

    static func refused(_ status: Int, _ code: Int, _ words: String) -> TransportResponse {
        TransportResponse(status, #"{"error":"etcdserver: \#(words)","message":"etcdserver: \#(words)","code":\#(code)}"#)
    }

    static func token(_ token: String) -> TransportResponse {
        TransportResponse(#"{"header":{"revision":"5"},"token":"\#(token)"}"#)
    }
}

extension EtcdTokenStore {
    static let password = "pass/word+ \"ü"

    /// Creates a store of the key `k` with this many endpoints.
    convenience init(
        _ transport: any TokenTransport, endpoints: Int = 1, user: (name: String, password: String)? = nil,
        environment: TokenService.Environment = .init()
    ) throws {
        let urls = try (0..<endpoints).map { try #require(URL(string: "https://etcd-\($0).example:2379")) }
        try self.init(key: "k", endpoints: urls, user: user, transport: transport, environment: environment)
    }
}

extension EtcdTokenStore {
    static let app = (name: "app", password: EtcdTokenStore.password)
}

/// Returns the error that an operation must throw.
func failure(_ body: () async throws -> Void) async throws -> EtcdError {
    try await #require(throws: EtcdError.self) { try await body() }
}

/// Returns every text that a value has.
func texts(_ value: Any) -> String {
    var dumped = ""
    dump(value, to: &dumped)
    return "\(value) \(String(reflecting: value)) \(dumped) \(Mirror(reflecting: value).children.map { "\($0)" })"
}
