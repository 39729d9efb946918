import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@testable import AccessTokensFiles

@Suite("Guarantees 22 and 24 with a file for each key") struct FileTokenStoresTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID().uuidString)")

    private func withDirectory(_ body: (FileTokenStores<String>) async throws -> Void) async throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body(FileTokenStores(directory: directory.path))
    }

    private func stored(_ value: String) -> StoredToken {
        StoredToken(AccessToken(value, refreshToken: "r"), received: Date(timeIntervalSince1970: 1))
    }

    private func files() throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: directory.path).sorted()
    }

    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (String(repeating: "a", count: 1_000), "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"),
    ])
    func `the hash of a key is SHA-256`(text: String, hash: String) {
        #expect(SHA256.hexadecimal(of: text) == hash)
    }

    @Test(arguments: ["Anna", "", "../../outside", "a/b", "~", "a\u{0}b", "..", String(repeating: "ä", count: 500)])
    func `a key's files don't show its name, and lie inside the directory`(key: String) async throws {
        try await withDirectory { stores in
            let store = stores.store(for: key)
            try await store.save(stored("token"))
            let name = SHA256.hexadecimal(of: key)
            #expect(try files() == [name, "\(name)/key", "\(name)/token"])
            #expect(try await store.load() == stored("token"))
            #expect(try await stores.storedKeys() == [key])
            let attributes = try FileManager.default.attributesOfItem(atPath: directory.path + "/" + name)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
            try await store.remove()
            #expect(try files() == [])
        }
    }

    @Test func `an error about a key whose name is too long says so`() async throws {
        try await withDirectory { stores in
            let store = stores.store(for: String(repeating: "SECRET", count: 200_000))
            let error = await #expect(throws: TokenFileError.self) { try await store.save(stored("token")) }
            let text = error.map { "\($0)" } ?? ""
            #expect(text.contains("the key's name is larger than 1048576 bytes") && !text.contains("SECRET"))
        }
    }

    @Test func `each key has a token of its own, which a later run finds`() async throws {
        try await withDirectory { stores in
            for key in ["a", "b", "c"] { try await stores.store(for: key).save(stored(key)) }
            try await stores.store(for: "b").remove()
            let later = FileTokenStores<String>(directory: directory.path)
            #expect(try await later.storedKeys().sorted() == ["a", "c"])
            #expect(try await later.store(for: "a").load() == stored("a"))
            #expect(try await later.store(for: "b").load() == nil)
            try await later.store(for: "b").remove()
        }
    }

    @Test func `a sign-out finds an account whose name was written with other, equal Unicode characters`() async throws {
        // Swift calls the two equal, and so does a table of services.
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        try await withDirectory { stores in
            try await stores.store(for: decomposed).save(stored("token"))
            #expect(try await stores.store(for: composed).load() == stored("token"))
            try await stores.store(for: composed).save(stored("newer"))
            #expect(try await stores.storedKeys() == [composed])
            let services = TokenServices<String>(stores: stores) { _, _ in throw CancellationError() }
            let change = await services.reset { $0 == composed }
            #expect(change.changes[composed]?.discarded.map(\.value) == ["newer"])
            #expect(try files() == [])
        }
    }

    @Test func `an empty name of a directory is an error that says so`() async throws {
        let stores = FileTokenStores<String>(directory: "")
        #expect(await failure { _ = try await stores.store(for: "a").load() }?.code == .invalidPath)
        #expect(await failure { _ = try await stores.storedKeys() }?.code == .invalidPath)
    }

    @Test func `a missing directory is an error, and doesn't count as no user signed in`() async throws {
        let stores = FileTokenStores<String>(directory: directory.path)
        let store = stores.store(for: "a")
        for operation in 0..<4 {
            let error = await #expect(throws: TokenFileError.self) {
                switch operation {
                case 0: _ = try await store.load()
                case 1: try await store.save(stored("a"))
                case 2: try await store.remove()
                default: _ = try await stores.storedKeys()
                }
            }
            #expect(error?.code == .noDirectory)
        }
    }

    @Test func `a directory that has another key's name is an error, and an unrelated file is ignored`() async throws {
        try await withDirectory { stores in
            try await stores.store(for: "a").save(stored("a"))
            try Data("x".utf8).write(to: directory.appending(path: "README"))
            #expect(try await stores.storedKeys() == ["a"])
            let (a, b) = (SHA256.hexadecimal(of: "a"), SHA256.hexadecimal(of: "b"))
            try FileManager.default.moveItem(atPath: "\(directory.path)/\(a)", toPath: "\(directory.path)/\(b)")
            let error = await #expect(throws: TokenFileError.self) { try await stores.storedKeys() }
            #expect(error?.code == .otherKey)
        }
    }

    @Test(arguments: [".token.0123456789abcdef.tmp", ".token.damaged"])
    func `a sign-out of all keys removes what a killed process left, even without a token`(leftover: String) async throws {
        try await withDirectory { stores in
            let store = stores.store(for: "anna")
            try await store.save(stored("token"))
            let folder = directory.appending(path: SHA256.hexadecimal(of: "anna"))
            try FileManager.default.moveItem(at: folder.appending(path: "token"), to: folder.appending(path: leftover))
            #expect(try await store.load() == nil)
            let services = TokenServices<String>(stores: stores, environment: .init(clock: ManualClock())) { _, _ in
                throw ScriptedFailure.transient
            }
            let change = await services.reset { _ in true }
            #expect(change.changes["anna"]?.storeFailure == nil && change.storeFailure == nil)
            #expect(try files() == [])
        }
    }

    @Test func `evicted services find their tokens again, and a sign-out removes them`() async throws {
        try await withDirectory { stores in
            let services = TokenServices<String>(
                keepingIdle: 0, stores: stores, environment: .init(clock: ManualClock())
            ) { key, previous in
                AccessToken("\(key) after \(previous?.refreshToken ?? "nothing")", lifetime: nil, refreshToken: key)
            }
            for key in ["a1", "a2", "b1"] { _ = try await services[key].retrieveToken() }
            #expect(try await services["a1"].retrieveToken().value == "a1 after nothing")
            let change = await services.reset { $0.hasPrefix("a") }
            #expect(change.changes.mapValues { $0.discarded.compactMap(\.refreshToken) } == ["a1": ["a1"], "a2": ["a2"]])
            #expect(try await stores.storedKeys() == ["b1"])
        }
    }
}
