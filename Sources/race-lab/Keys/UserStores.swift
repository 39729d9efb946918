import AccessTokens
import AccessTokensKeys
import AccessTokensFiles

/// The stores of a real server's users, each of which has a refresh token from elsewhere while it is empty.
struct UserStores: TokenStores {
    let base: any TokenStores<Int>
    /// Each user's refresh token, in order; none: the stores have them.
    let seeds: [String]

    func store(for key: Int) -> any TokenStore { seeded(key) }

    fileprivate func seeded(_ key: Int) -> SeededStore {
        SeededStore(base: base.store(for: key), refreshToken: seeds.indices.contains(key) ? seeds[key] : nil)
    }

    @concurrent func storedKeys() async throws -> [Int] { try await base.storedKeys() }
}

extension Options.Server {
    /// The stores for so many users' tokens, ready to keep them.
    ///
    /// - Parameter seeds: The refresh tokens from the environment, separated by spaces.
    func stores(ofUsers count: Int, seeds text: String?) async throws -> UserStores {
        let seeds = (text ?? "").split(whereSeparator: \.isWhitespace).map(String.init)
        guard seeds.isEmpty || seeds.count == count else {
            throw UsageError(
                "REFRESH_TOKEN has \(counted(seeds.count, "refresh token")) for \(counted(count, "key")): put one for each key there, "
                    + "separated by spaces")
        }
        guard Set(seeds).count == seeds.count else {
            throw UsageError("REFRESH_TOKEN has the same refresh token twice: give each key its own")
        }
        guard let directory = store else {
            let loss = "without --store the new refresh tokens are lost at the end, if the server replaces refresh tokens"
            Console.note(RaceLab.note(of: loss))
            return UserStores(base: InMemoryTokenStores(), seeds: seeds)
        }
        let stores = UserStores(
            base: FileTokenStores(directory: directory, name: { "\($0)" }, key: { Int($0) }), seeds: seeds)
        for key in 0..<count { _ = try await stores.seeded(key).prepare() }
        return stores
    }
}
