import AccessTokens
import AccessTokensSharing
import Foundation

// The Swift blocks of `OtherEngines`, as they stand there; `EngineTests` runs each against a stand-in for its engine.

/// Sends one request, once, and returns any answer; throws if there is none.
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
        let (status, body) = try await api.send("GET", "\(path)/\(name)", body: Data())
        if status == 404 { return nil }
        guard status == 200 else { throw UnexpectedAnswer(status: status) }
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

struct VaultStore: SharedTokenStore {
    let vault: any EngineClient
    let path: String  // such as /v1/secret/data/tokens/reports

    struct Secret: Decodable {
        struct Version: Decodable { let version: Int }
        struct Content: Decodable {
            let data: [String: Data]?
            let metadata: Version
        }

        let data: Content
    }

    @concurrent func load() async throws -> SharedRecord? {
        let (status, body) = try await vault.send("GET", path, body: Data())
        // A deleted version answers 404 too, with its number.
        let isAbsent = status == 404
        guard status == 200 || isAbsent else {
            throw UnexpectedAnswer(status: status)
        }
        guard let secret = try? JSONDecoder().decode(Secret.self, from: body) else {
            if isAbsent { return nil }
            throw UnexpectedAnswer(status: status)
        }
        let bytes = secret.data.data?["record"] ?? Data()
        return SharedRecord(
            bytes, revision: .init("\(secret.data.metadata.version)"))
    }

    @concurrent func swap(
        _ bytes: Data, ifAt revision: SharedRecord.Revision?
    ) async throws -> SharedRecord.Swap {
        struct Write: Encodable {
            let options: [String: Int]
            let data: [String: Data]
        }
        struct Written: Decodable { let data: Secret.Version }

        guard let version = revision.map({ Int($0.text) }) ?? 0 else {
            throw UnexpectedAnswer(status: 0)
        }
        let write = Write(options: ["cas": version], data: ["record": bytes])
        let (status, body) = try await vault.send(
            "POST", path, body: JSONEncoder().encode(write))
        if status == 200 {
            let written = try JSONDecoder().decode(Written.self, from: body)
            return .done(.init("\(written.data.version)"))
        }
        // A failed check-and-set is a 400 like other mistakes: look.
        let current = try await load()
        guard status == 400, current?.revision != revision else {
            throw UnexpectedAnswer(status: status)
        }
        return .conflict(current)
    }
}

struct ConsulStore: SharedTokenStore {
    let consul: any EngineClient
    let key: String

    struct Entry: Decodable {
        enum CodingKeys: String, CodingKey {
            case index = "ModifyIndex", value = "Value"
        }

        let index: UInt64
        let value: Data?
    }

    @concurrent func load() async throws -> SharedRecord? {
        let (status, body) = try await consul.send(
            "GET", "/v1/kv/\(key)?consistent", body: Data())
        if status == 404 { return nil }
        guard status == 200,
            let entry = try JSONDecoder().decode([Entry].self, from: body).first
        else { throw UnexpectedAnswer(status: status) }
        return SharedRecord(
            entry.value ?? Data(), revision: .init("\(entry.index)"))
    }

    @concurrent func swap(
        _ bytes: Data, ifAt revision: SharedRecord.Revision?
    ) async throws -> SharedRecord.Swap {
        // One transaction: `?cas=` alone would not say the new index.
        struct Operation: Encodable {
            enum CodingKeys: String, CodingKey {
                case verb = "Verb", key = "Key", value = "Value", index = "Index"
            }

            let verb: String, key: String, value: Data, index: UInt64
        }
        struct Answer: Decodable {
            struct Result: Decodable {
                enum CodingKeys: String, CodingKey { case entry = "KV" }
                let entry: Index
            }
            struct Index: Decodable {
                enum CodingKeys: String, CodingKey { case value = "ModifyIndex" }
                let value: UInt64
            }
            enum CodingKeys: String, CodingKey { case results = "Results" }
            let results: [Result]
        }

        guard let index = revision.map({ UInt64($0.text) }) ?? 0 else {
            throw UnexpectedAnswer(status: 0)
        }
        let operation = Operation(
            verb: "cas", key: key, value: bytes, index: index)
        let (status, body) = try await consul.send(
            "PUT", "/v1/txn", body: JSONEncoder().encode([["KV": operation]]))
        switch status {
        case 200:
            let answer = try JSONDecoder().decode(Answer.self, from: body)
            guard let new = answer.results.first?.entry.value else {
                throw UnexpectedAnswer(status: status)
            }
            return .done(.init("\(new)"))
        case 409: return .conflict(try await load())
        default: throw UnexpectedAnswer(status: status)
        }
    }
}
