import AccessTokens
import AccessTokensEtcd
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Insides
import TestBudgets
import Testing

// The Swift blocks of `AccessTokensEtcd` and `SharingThroughEtcd`, unchanged, and run.

func sharedStore(
    of account: String, at endpoints: [URL], password: String
) throws -> EtcdTokenStore {
    try EtcdTokenStore(
        key: "/tokens/\(account)", endpoints: endpoints,
        user: (name: "reports", password: password))
}

@Suite(.inRealTime) struct `The guide to etcd` {
    private let endpoints = ["https://etcd-1.example:2379", "https://etcd-2.example:2379"].compactMap { URL(string: $0) }
    private let password = "a password"

    private func texts(of value: Any) -> String { "\(value) \(String(reflecting: value))" }

    @Test func `creates a store, and a service over it`() throws {
        let loader = SimulatedAuthorizationServer().loader
        let store = try EtcdTokenStore(
            key: "/tokens/reports",
            endpoints: endpoints,
            user: (name: "reports", password: password))
        let tokens = TokenService(sharedStore: store, loader: loader)
        #expect(!texts(of: tokens).contains(password))
        #expect(store.keyInEtcd == "/tokens/reports")
        #expect(try sharedStore(of: "anna", at: endpoints, password: password).keyInEtcd == "/tokens/anna")
    }
}
