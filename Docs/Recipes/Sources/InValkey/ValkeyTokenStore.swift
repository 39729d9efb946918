import AccessTokensSharing
import Foundation

/// A grant that processes on several hosts share, under a key of Valkey
/// or Redis.
struct ValkeyTokenStore: SharedTokenStore {
    let database: ValkeyConnection
    let key: String

    /// Replaces the record if its revision is the first argument;
    /// otherwise, or without arguments, returns it.
    private static let script = """
        -- Changes nothing, but a replica, whose records are old, refuses
        -- it.
        redis.call('HDEL', KEYS[1], '')
        local time = redis.call('TIME')
        local now = time[1] * 1000 + math.floor(time[2] / 1000)
        local known = redis.call(
            'HMGET', KEYS[1], 'revision', 'bytes', 'written')
        if ARGV[1] == (known[1] or '') then
            redis.call('HSET', KEYS[1],
                'revision', ARGV[2], 'bytes', ARGV[3], 'written', now)
            return {'done'}
        end
        if not known[1] then return {} end
        return {known[1], known[2], string.format('%.0f', now - known[3])}
        """

    @concurrent func load() async throws -> SharedRecord? {
        record(in: try await database.eval(Self.script, key: key, []))
    }

    @concurrent func swap(
        _ bytes: Data, ifAt revision: SharedRecord.Revision?
    ) async throws -> SharedRecord.Swap {
        let new = UUID().uuidString  // no revision is used twice
        let answer = try await database.eval(
            Self.script, key: key,
            [Data((revision?.text ?? "").utf8), Data(new.utf8), bytes])
        return answer.count == 1
            ? .done(.init(new)) : .conflict(record(in: answer))
    }

    private func record(in answer: [Data]) -> SharedRecord? {
        guard answer.count == 3 else { return nil }
        let age = Int(String(decoding: answer[2], as: UTF8.self)) ?? 0
        return SharedRecord(
            answer[1],
            revision: .init(String(decoding: answer[0], as: UTF8.self)),
            age: .milliseconds(max(age, 0)))
    }
}
