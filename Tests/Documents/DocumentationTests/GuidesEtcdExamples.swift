import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing

// The Swift blocks of `AccessTokensEtcd` and `SharingThroughEtcd`, as they stand there, run.

/// What a client's own connection failure is called.
struct NotConnected: Error {}

/// An HTTP client, as far as etcd needs one.
protocol HTTPClient: Sendable {
    @concurrent func post(
        _ url: URL, headers: [String: String], body: Data, timeLimit: Duration
    ) async throws -> (status: Int, body: Data)
}

func sharedStore(
    of account: String, at endpoints: [URL], password: String
) throws -> EtcdTokenStore {
    try EtcdTokenStore(
        key: "/tokens/\(account)", endpoints: endpoints,
        user: EtcdUser(name: "reports", password: password))
}

struct ClientTransport: EtcdTransport {
    let client: any HTTPClient

    @concurrent func send(
        _ request: EtcdRequest
    ) async throws -> EtcdResponse {
        do {
            let (status, body) = try await client.post(
                request.url, headers: request.headers,
                body: request.body, timeLimit: request.timeLimit)
            return EtcdResponse(status: status, body: body)
        } catch let error as NotConnected {
            // Nothing was sent: another endpoint may be asked.
            throw EtcdError.notSent("no connection", underlying: error)
        }
    }
}

@Suite struct `The guide to etcd` {
    private let endpoints = ["https://etcd-1.example:2379", "https://etcd-2.example:2379"].compactMap { URL(string: $0) }
    private let password = "a password"

    private func texts(of value: Any) -> String { "\(value) \(String(reflecting: value))" }

    @Test func `creates a store, and a service over it`() throws {
        let loader = SimulatedAuthorizationServer().loader
        let store = try EtcdTokenStore(
            key: "/tokens/reports",
            endpoints: endpoints,
            user: EtcdUser(name: "reports", password: password))
        let tokens = TokenService(sharedStore: store, loader: loader)
        #expect(!texts(of: tokens).contains(password))
        #expect(store.key == "/tokens/reports")
        #expect(try sharedStore(of: "anna", at: endpoints, password: password).key == "/tokens/anna")
    }

    @Test func `passes a swap on when the client says that it was not sent`() async throws {
        struct FirstIsDown: HTTPClient {
            @concurrent func post(
                _ url: URL, headers: [String: String], body: Data, timeLimit: Duration
            ) async throws -> (status: Int, body: Data) {
                if url.host == "etcd-1.example" { throw NotConnected() }
                return (200, Data(#"{"header":{"revision":"5"},"succeeded":true,"responses":[{"response_put":{}}]}"#.utf8))
            }
        }
        let store = try EtcdTokenStore(
            key: "k", endpoints: endpoints, transport: ClientTransport(client: FirstIsDown()))
        #expect(try await store.swap(Data("x".utf8), ifAt: nil) == .done(.init("5")))
    }
}
