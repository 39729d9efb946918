import AccessTokens
import AccessTokensSharing
import Foundation

// The rest of the Swift blocks of `OtherEngines`: an engine that needs a client library, of which a protocol has the two calls.

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
