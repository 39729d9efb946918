import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Sign-outs of accounts on real threads, while services are created, released, found again, and load.
@Suite("Guarantee 24 on real threads", .tags(.threads)) struct KeyFenceStormTests {
    /// An authorization server at which a session begins when a load comes without a refresh token.
    ///
    /// A session is identified by the number of sign-outs that had begun before it, which all its tokens carry.
    private final class Server: Sendable {
        struct Numbers: Sendable {
            /// How many sign-outs have begun and ended.
            var begun = 0, ended = 0
            var tokens = 0
            /// How many calls got a token.
            var served = 0
        }

        let numbers = Lock(Numbers())

        func load(replacing previous: AccessToken?) async -> AccessToken {
            let (number, now) = numbers.withLock { numbers in
                numbers.tokens += 1
                return (numbers.tokens, numbers.begun)
            }
            await Task.yield()
            let session = previous?.refreshToken.flatMap { Self.session(of: $0) } ?? now
            return AccessToken(
                "\(session):\(number)", lifetime: .seconds(number % 3 == 0 ? 0 : 3_600), refreshToken: "\(session):\(number)")
        }

        static func session(of token: String) -> Int? { Int(token.prefix { $0 != ":" }) }
    }

    @Test(arguments: [0, 2], [false, true])
    func `no call after a sign-out sees anything from before it, whenever services are made or evicted`(
        limit: Int, sharesGrants: Bool
    ) async {
        let server = Server(), old = Log<String>()
        let keeper: @Sendable (Int) -> Int = { $0 % 2 }
        let services = TokenServices<Int>(
            keepingIdle: limit, grant: sharesGrants ? keeper : nil, stores: InMemoryTokenStores()
        ) { _, previous in await server.load(replacing: previous) }
        await withDiscardingTaskGroup { group in
            for worker in 0..<4 {
                group.addTask {
                    var random = SplitMix64(seed: UInt64(worker))
                    for _ in 0..<Int.everyday(1_000, thorough: 50_000) {
                        let key = random.below(6), ended = server.numbers.withLock { $0.ended }
                        guard let token = try? await services[key].retrieveToken() else { continue }
                        server.numbers.withLock { $0.served += 1 }
                        let session = Server.session(of: token.value) ?? -1
                        if session < ended { old.append("key \(key) got \(token.value) after \(ended) sign-outs") }
                    }
                }
            }
            group.addTask {
                for _ in 0..<Int.everyday(150, thorough: 5_000) {
                    let number = server.numbers.withLock { numbers in
                        numbers.begun += 1
                        return numbers.begun
                    }
                    let change = await services.reset { _ in true }
                    guard change.storeFailure == nil else { continue }
                    server.numbers.withLock { $0.ended = number }
                }
            }
        }
        #expect(old.entries.isEmpty, "\(old.entries.count): \(old.entries.prefix(3))")
        #expect(server.numbers.withLock { $0.served } > 100)
    }
}
