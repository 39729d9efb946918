import AccessTokens
import AccessTokensSharing
import Foundation

// The rest of the Swift blocks of `OtherEngines`: engines that need a client library, of which a protocol has the one call.

/// Runs one statement in a transaction of its own and returns the first row.
protocol SQLClient: Sendable {
    @concurrent func row(
        _ statement: String, _ parameters: [any Sendable]
    ) async throws -> (revision: Int64, bytes: Data)?
}

struct PostgreSQLStore: SharedTokenStore {
    let database: any SQLClient
    let name: String

    // CREATE SEQUENCE grant_revisions;
    // CREATE TABLE grants (name text PRIMARY KEY,
    //     revision bigint NOT NULL, bytes bytea NOT NULL);
    private static let read =
        "SELECT revision, bytes FROM grants WHERE name = $1"
    private static let create = """
        INSERT INTO grants VALUES ($1, nextval('grant_revisions'), $2)
        ON CONFLICT (name) DO NOTHING RETURNING revision, bytes
        """
    private static let replace = """
        UPDATE grants SET revision = nextval('grant_revisions'), bytes = $2
        WHERE name = $1 AND revision = $3 RETURNING revision, bytes
        """

    @concurrent func load() async throws -> SharedRecord? {
        try await database.row(Self.read, [name]).map {
            SharedRecord($0.bytes, revision: .init("\($0.revision)"))
        }
    }

    @concurrent func swap(
        _ bytes: Data, ifAt revision: SharedRecord.Revision?
    ) async throws -> SharedRecord.Swap {
        let row =
            if let revision {
                try await database.row(
                    Self.replace, [name, bytes, Int64(revision.text) ?? 0])
            } else {
                try await database.row(Self.create, [name, bytes])
            }
        if let row { return .done(.init("\(row.revision)")) }
        return .conflict(try await load())
    }
}

/// Two calls of the client for DynamoDB, for one item with the attributes `revision` and `bytes`.
protocol DynamoDBClient: Sendable {
    typealias Item = (revision: String, bytes: Data)

    /// GetItem with `ConsistentRead` true.
    @concurrent func item(_ key: String) async throws -> Item?

    /// PutItem; `false` after a ConditionalCheckFailedException.
    @concurrent func put(
        _ key: String, _ item: Item,
        condition: String, values: [String: String]
    ) async throws -> Bool
}

struct DynamoDBStore: SharedTokenStore {
    let table: any DynamoDBClient
    let key: String

    @concurrent func load() async throws -> SharedRecord? {
        try await table.item(key).map {
            SharedRecord($0.bytes, revision: .init($0.revision))
        }
    }

    @concurrent func swap(
        _ bytes: Data, ifAt revision: SharedRecord.Revision?
    ) async throws -> SharedRecord.Swap {
        let new = UUID().uuidString
        let isDone = try await table.put(
            key, (new, bytes),
            condition: revision == nil
                ? "attribute_not_exists(revision)" : "revision = :known",
            values: revision.map { [":known": $0.text] } ?? [:])
        return isDone ? .done(.init(new)) : .conflict(try await load())
    }
}

/// EVAL of the client for Valkey or Redis.
protocol ValkeyClient: Sendable {
    @concurrent func eval(
        _ script: String, keys: [String], arguments: [Data]
    ) async throws -> [Data]
}

struct ValkeyStore: SharedTokenStore {
    let valkey: any ValkeyClient
    let key: String

    private static let read = """
        local found = redis.call('HMGET', KEYS[1], 'revision', 'bytes')
        return found[1] and found or {}
        """
    private static let swap = """
        local known = redis.call('HGET', KEYS[1], 'revision') or ''
        if known ~= ARGV[1] then return {} end
        redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'bytes', ARGV[3])
        return {ARGV[2]}
        """

    @concurrent func load() async throws -> SharedRecord? {
        let found = try await valkey.eval(
            Self.read, keys: [key], arguments: [])
        guard found.count == 2 else { return nil }
        let revision = String(decoding: found[0], as: UTF8.self)
        return SharedRecord(found[1], revision: .init(revision))
    }

    @concurrent func swap(
        _ bytes: Data, ifAt revision: SharedRecord.Revision?
    ) async throws -> SharedRecord.Swap {
        let new = UUID().uuidString
        let answer = try await valkey.eval(
            Self.swap, keys: [key],
            arguments: [
                Data((revision?.text ?? "").utf8), Data(new.utf8), bytes,
            ])
        return answer.isEmpty ? .conflict(try await load()) : .done(.init(new))
    }
}
