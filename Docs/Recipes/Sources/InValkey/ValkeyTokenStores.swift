import AccessTokensSharing
import Foundation

/// The grants of many keys, each under a key of Valkey or Redis that
/// begins with the prefix.
struct ValkeyTokenStores: SharedTokenStores {
    /// Each key's operations take turns on one of them.
    let databases: [ValkeyConnection]
    var prefix = "tokens:"

    /// Returns where the scan goes on, and keys; the argument is where.
    private static let scan = """
        redis.call('HDEL', KEYS[1], '')  -- refused by a replica
        local pattern = string.gsub(KEYS[1], '[%*%?%[%]%^\\\\]', '\\\\%0')
        local page = redis.call(
            'SCAN', ARGV[1], 'MATCH', pattern .. '*', 'COUNT', 1000)
        return {page[1], unpack(page[2])}
        """

    func store(for name: String) -> any SharedTokenStore {
        let sum = name.utf8.reduce(0) { $0 &* 31 &+ UInt($1) }
        let database = databases[Int(sum % UInt(databases.count))]
        return ValkeyTokenStore(database: database, key: prefix + name)
    }

    /// A key that is written meanwhile may be named twice.
    @concurrent func forEachStoredKey(
        _ body: @escaping @Sendable (String) -> Void
    ) async throws {
        var cursor = Data("0".utf8)
        repeat {
            let page = try await databases[0].eval(
                Self.scan, key: prefix, [cursor])
            cursor = page.first ?? Data("0".utf8)
            for key in page.dropFirst() {
                let name = key.dropFirst(prefix.utf8.count)
                body(String(decoding: name, as: UTF8.self))
            }
        } while cursor != Data("0".utf8)
    }
}
