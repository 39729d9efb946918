import AccessTokens
import AccessTokensKeys
import AccessTokensSharing
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import AccessTokensFiles
@testable import AccessTokensSharedFiles

@Suite("Guarantees 22, 24 and 31 with a shared file for each key") struct SharedFileTokenStoresTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "grants-\(UUID().uuidString)")

    private func withDirectory(_ body: () async throws -> Void) async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body()
    }

    private func stores() -> SharedFileTokenStores<String> { SharedFileTokenStores(directory: directory.path) }

    private func files() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: directory.path).sorted()
    }

    @Test(arguments: ["Anna", "", "../../outside", "a/b", "a\u{0}b", String(repeating: "ä", count: 500)])
    func `a key's files don't show its name, and another process finds its record`(key: String) async throws {
        try await withDirectory {
            let store = stores().store(for: key)
            #expect(try await store.load() == nil)
            #expect(try files() == [], "a read creates no file")
            guard case .done(let revision) = try await store.swap(Data("x".utf8), ifAt: nil) else { throw CancellationError() }
            let name = SHA256.hexadecimal(of: key)
            #expect(try files() == [name, "\(name)/grant", "\(name)/key"])
            let attributes = try FileManager.default.attributesOfItem(atPath: directory.path + "/" + name)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
            #expect(try await stores().storedKeys() == [key])
            let found = try await stores().store(for: key).load()
            #expect(found?.bytes == Data("x".utf8) && found?.revision == revision)
            guard case .conflict? = try? await stores().store(for: key).swap(Data("y".utf8), ifAt: nil) else {
                throw CancellationError()
            }
        }
    }

    @Test func `keys that Swift calls equal have one record, whichever Unicode characters write them`() async throws {
        try await withDirectory {
            _ = try await stores().store(for: "cafe\u{301}").swap(Data("x".utf8), ifAt: nil)
            #expect(try await stores().store(for: "caf\u{E9}").load()?.bytes == Data("x".utf8))
            #expect(try await stores().storedKeys().count == 1)
        }
    }

    @Test func `all keys of a process have one holder, whose end another process notices`() async throws {
        try await withDirectory {
            var ours: SharedFileTokenStores<String>? = stores()
            let holders = [await ours?.store(for: "a").holder, await ours?.store(for: "b").holder]
            let holder = try #require(holders[0] ?? nil)
            #expect(holders[1] == holder)
            let alive = try files().filter { $0.hasSuffix(".alive") }
            #expect(alive.count == 1)
            let theirs = stores().store(for: "c")
            #expect(await theirs.isRunning(holder) == true)
            ours = nil
            #expect(await theirs.isRunning(holder) == false)
        }
    }

    @Test func `a missing directory is an error, and doesn't count as no user signed in`() async throws {
        let store = stores().store(for: "a")
        for operation in 0..<3 {
            let error = await #expect(throws: TokenFileError.self) {
                switch operation {
                case 0: _ = try await store.load()
                case 1: _ = try await store.swap(Data(), ifAt: nil)
                default: _ = try await stores().storedKeys()
                }
            }
            #expect(error?.code == .noDirectory)
        }
        #expect(await store.holder == nil)
    }

    @Test func `processes share each key's grant, and one signs an account out for all`() async throws {
        try await withDirectory {
            // A slow clock: a busy machine may take longer than a store's limit.
            let tables = (0..<2).map { _ in
                TokenServices<String>(
                    keepingIdle: 0, sharedStores: stores(), environment: .init(clock: PatientClock())
                ) { key, previous in
                    AccessToken("\(key) after \(previous?.refreshToken ?? "nothing")", lifetime: nil, refreshToken: key)
                }
            }
            for key in ["a1", "a2", "b1"] {
                await tables[0][key].replace(with: AccessToken("\(key)'s", lifetime: nil, refreshToken: "first"))
                let adopted = try await tables[1][key].retrieveToken()
                #expect(adopted.value == "\(key)'s")
            }
            let signOut = await tables[1].reset { $0.hasPrefix("a") }
            #expect(signOut.changes.mapValues { $0.discarded.compactMap(\.refreshToken) } == ["a1": ["first"], "a2": ["first"]])
            let (signedOut, other) = (try await tables[0]["a1"].retrieveToken(), try await tables[0]["b1"].retrieveToken())
            #expect(signedOut.value == "a1 after nothing" && other.value == "b1's")
            #expect(try await stores().storedKeys().sorted() == ["a1", "a2", "b1"])
        }
    }
}
