import AccessTokens
import AccessTokensSharing
import Foundation

// The Swift blocks of `OtherEngines` that aren't part of a recipe; `EngineTests` runs the store against a stand-in for an engine.

/// Sends one request, once, and returns any answer; throws if there is
/// none.
protocol EngineClient: Sendable {
    @concurrent func send(
        _ method: String, _ path: String, body: Data
    ) async throws -> (status: Int, body: Data)
}

struct UnexpectedAnswer: Error {
    let status: Int
}

struct KubernetesStore: SharedTokenStore {
    let api: any EngineClient
    let namespace: String, name: String

    struct Secret: Codable {
        struct Metadata: Codable {
            var name: String
            var resourceVersion: String?
        }

        var apiVersion = "v1", kind = "Secret"
        var metadata: Metadata
        var data: [String: Data]
    }

    private var path: String { "/api/v1/namespaces/\(namespace)/secrets" }

    @concurrent func load() async throws -> SharedRecord? {
        // Without resourceVersion in the query: the newest one.
        let (status, body) = try await api.send(
            "GET", "\(path)/\(name)", body: Data())
        if status == 404 { return nil }
        guard status == 200 else {
            throw UnexpectedAnswer(status: status)
        }
        return try record(in: body)
    }

    @concurrent func swap(
        _ bytes: Data, ifAt revision: SharedRecord.Revision?
    ) async throws -> SharedRecord.Swap {
        let secret = Secret(
            metadata: .init(name: name, resourceVersion: revision?.text),
            data: ["record": bytes])
        let (status, body) = try await api.send(
            revision == nil ? "POST" : "PUT",
            revision == nil ? path : "\(path)/\(name)",
            body: JSONEncoder().encode(secret))
        switch status {
        case 200, 201: return .done(try record(in: body).revision)
        case 404, 409: return .conflict(try await load())
        default: throw UnexpectedAnswer(status: status)
        }
    }

    private func record(in body: Data) throws -> SharedRecord {
        let secret = try JSONDecoder().decode(Secret.self, from: body)
        guard let version = secret.metadata.resourceVersion else {
            throw UnexpectedAnswer(status: 200)
        }
        let bytes = secret.data["record"] ?? Data()
        return SharedRecord(bytes, revision: .init(version))
    }
}
