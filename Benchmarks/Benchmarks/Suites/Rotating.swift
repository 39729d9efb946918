import AccessTokens
import AccessTokensSharedFiles
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Synchronization

extension Suite {
    /// A rotation of a shared grant, beside the two swaps that it needs, so that the disk's speed can be told from the service's.
    static func rotating(_ effort: Effort) async throws -> [Table] {
        let directory = FileManager.default.temporaryDirectory.appending(path: "rotating-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let stores: [(name: String, make: @Sendable (_ file: String) -> any SharedTokenStore)] = [
            ("in memory", { _ in InMemorySharedTokenStore() }),
            ("in a file", { SharedFileTokenStore(path: directory.appending(path: $0).path) }),
        ]
        var table = Table(id: "rotating", title: "A rotation of a grant that processes share, beside its two swaps")
        for store in stores {
            let subjects = [
                try await rotations(over: store.make("ours")), try await swaps(over: store.make("bare")),
            ]
            let rounds = try await Rounds(of: subjects, rounds: effort.rounds, batch: effort.batch)
            table.add(
                store.name, .init(column: "a rotation", value: rounds.sample(0), unit: .nanoseconds),
                .init(column: "two swaps", value: rounds.sample(1), unit: .nanoseconds),
                .init(column: "ours ÷ swaps", value: rounds.ratio(of: 0, to: 1), unit: .ratio))
        }
        return [table]
    }

    /// A service whose server answers at once, and each of whose tokens has expired when the next one is asked for.
    private static func rotations(over store: any SharedTokenStore) async throws -> Subject {
        let count = Atomic(0), clock = ManualClock()
        let wallClock = { @Sendable in Date(timeIntervalSince1970: clock.now.offset / .seconds(1)) }
        let service = TokenService(
            sharedStore: store, environment: .init(clock: clock, wallClock: wallClock),
            loader: ClosureLoader {
                let number = count.add(1, ordering: .relaxed).newValue
                return AccessToken("access \(number)", lifetime: .seconds(3_600), refreshToken: "refresh \(number)")
            })
        await service.replace(with: AccessToken("access", lifetime: .seconds(3_600), refreshToken: "refresh"))
        return Subject("TokenService") { times in
            try await timed {
                for _ in 0..<times {
                    clock.advance(by: .seconds(3_600))
                    use(try await service.retrieveToken())
                }
            }
        }
    }

    /// The least that a rotation must write: a mark before the request, and the new grant after it.
    private static func swaps(over store: any SharedTokenStore) async throws -> Subject {
        let record = Data(repeating: 0x20, count: 600)  // as long as a grant's
        return Subject("two swaps") { times in
            var revision = try await store.load()?.revision
            return try await timed {
                for _ in 0..<(2 * times) {
                    guard case .done(let next) = try await store.swap(record, ifAt: revision) else { throw CancellationError() }
                    revision = next
                }
            }
        }
    }
}

private struct ClosureLoader: TokenLoader {
    let load: @Sendable () -> AccessToken

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken { load() }
}
