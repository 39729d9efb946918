import AccessTokens
import AccessTokensFiles
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

@Suite("Guarantee 24: two programs over one directory of keys") struct KeyDirectoryStormTests {
    @Test func `a save during another store's removal succeeds, and a sign-out of all keys finds everything it leaves`()
        async throws
    {
        let place = try Place(), failures = Log<String>()
        for round in 0..<Int.everyday(60, thorough: 1_500) {
            await withDiscardingTaskGroup { group in
                for worker in 0..<4 {
                    group.addTask {
                        // Each is a separate store, as in another process.
                        let store = FileTokenStores<String>(directory: place.directory).store(for: "Anna")
                        for step in 0..<3 {
                            do {
                                if worker % 2 == 0 { try await store.remove() } else { try await store.save(Place.stored(step)) }
                            } catch let error as TokenFileError where error.tookEffect {
                                // It has replaced what another store has saved.
                            } catch {
                                failures.append("\(error)")
                            }
                        }
                    }
                }
            }
            let paths = try FileManager.default.subpathsOfDirectory(atPath: place.directory)
            let keys = try await FileTokenStores<String>(directory: place.directory).storedKeys()
            try #require(keys == (paths.contains { $0.hasSuffix("/token") } ? ["Anna"] : []), "round \(round): \(paths)")
            if keys.isEmpty { #expect(paths == []) }
        }
        #expect(failures.entries.isEmpty, "\(failures.entries.count): \(failures.entries.first ?? "")")
    }
}
