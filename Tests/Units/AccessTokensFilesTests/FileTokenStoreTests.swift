import AccessTokens
import AccessTokensFiles
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("A file token store keeps what it is given")
struct FileTokenStoreTests {
    private let place: Place

    init() throws {
        place = try Place()
    }

    static let tokens = [
        AccessToken("a"),
        AccessToken("", tokenType: "", scope: "", refreshToken: ""),
        AccessToken(
            "a/b+c=\"\\\u{0}\n\u{1F511}e\u{301}", tokenType: "DPoP", lifetime: .seconds(3600), refreshIn: .seconds(1800),
            scope: "read write", refreshToken: "r/\u{2028}",
            refreshTokenExpiration: Date(timeIntervalSinceReferenceDate: 0.1)),
        AccessToken("a", lifetime: Duration(secondsComponent: 1, attosecondsComponent: 1), refreshIn: .zero),
        AccessToken("a", lifetime: Duration(secondsComponent: -7, attosecondsComponent: -999_999_999_999_999_999)),
        AccessToken("a", lifetime: .seconds(Int64.max), refreshIn: .seconds(Int64.min)),
        AccessToken(String(repeating: "x", count: 100_000)),
    ]

    @Test(arguments: tokens)
    func `every field of a saved token comes back as it was`(_ token: AccessToken) async throws {
        var random = SplitMix64(seed: 1)
        let seconds = [
            0, 0.1, -62_135_769_600, Double.greatestFiniteMagnitude, Double.leastNonzeroMagnitude,
            .random(in: -1e10...1e10, using: &random),
        ]
        for seconds in seconds {
            let stored = StoredToken(token, received: Date(timeIntervalSinceReferenceDate: seconds))
            try await place.store.save(stored)
            let loaded = try await place.store.load()
            #expect(loaded == stored)
            #expect(loaded?.token.refreshToken == token.refreshToken && loaded?.token.lifetime == token.lifetime)
        }
    }

    @Test func `a lifetime longer than 292 billion years is shortened to that, without a crash`() async throws {
        let token = AccessToken("a", lifetime: .seconds(1e20), refreshIn: .seconds(-1e20))
        try await place.store.save(StoredToken(token, received: Date()))
        let loaded = try #require(try await place.store.load()).token
        #expect(loaded.lifetime == .seconds(Int64.max) && loaded.refreshIn == .seconds(Int64.min))
    }

    @Test func `the store is empty before the first save and after a removal, which may be repeated`() async throws {
        let store = place.store
        #expect(try await store.load() == nil)
        try await store.remove()
        try await store.save(Place.stored())
        try await store.remove()
        #expect(try await store.load() == nil)
        try await store.remove()
        #expect(try place.names == [])
    }

    @Test func `a save replaces the file by a new one, so that a reader of the old one reads it whole`() async throws {
        try await place.store.save(Place.stored(1))
        let old = try FileHandle(forReadingFrom: URL(fileURLWithPath: place.path))
        let bytes = try place.bytes
        try await place.store.save(Place.stored(2))
        let seen = try old.readToEnd().map(Array.init)
        #expect(seen == bytes)
        #expect(try await place.store.load() == Place.stored(2))
        #expect(try place.names == ["token.json"])
    }

    @Test func `a hard link keeps its token when a save replaces the file or a removal deletes it`() async throws {
        let other = FileTokenStore(path: place.directory + "/other.json")
        try await place.store.save(Place.stored(1))
        try FileManager.default.linkItem(atPath: place.path, toPath: other.path)
        #expect(try await place.store.load() == Place.stored(1))
        try await place.store.save(Place.stored(2))
        #expect(try await other.load() == Place.stored(1))
        #expect(try await place.store.load() == Place.stored(2))
        try FileManager.default.removeItem(atPath: place.path)
        try FileManager.default.linkItem(atPath: other.path, toPath: place.path)
        try await place.store.remove()
        #expect(try await place.store.load() == nil)
        #expect(try await other.load() == Place.stored(1))
    }

    @Test(arguments: [0o600, 0o644, 0o666, 0o777])
    func `only the owner can access the token file, whatever was there before`(_ mode: Int) async throws {
        try await place.store.save(Place.stored(1))
        try place.setMode(mode)
        try await place.store.save(Place.stored(2))
        #expect(try place.mode() == 0o600)
    }

    @Test(arguments: ["000", "077", "777"])
    func `only the owner can access the token file, under any umask`(_ mask: String) async throws {
        let output = try await Rotation(in: place).saveOnce(limit: 1 << 20, umask: mask)
        #expect(output == "saved\n")
        #expect(try place.mode() == 0o600)
    }

    @Test(arguments: [0o640, 0o604, 0o666])
    func `a load removes other users' permissions`(_ mode: Int) async throws {
        try await place.store.save(Place.stored())
        try place.setMode(mode)
        #expect(try await place.store.load() == Place.stored())
        #expect(try place.mode() == 0o600)
    }

    @Test func `concurrent saves and loads of two stores at one path never see a partial file or fail`() async throws {
        let place = place
        try await place.store.save(Place.stored(0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...2 {
                let store = place.store
                group.addTask {
                    for step in 1...40 {
                        let error = await failure { try await store.save(Place.stored(number * 1000 + step)) }
                        #expect(error == nil || error?.code == .changedElsewhere, "it has replaced what the other has saved")
                    }
                }
            }
            group.addTask {
                for _ in 1...200 { _ = try #require(try await place.store.load()) }
            }
            try await group.waitForAll()
        }
        let last = try #require(try await place.store.load())
        #expect([1040, 2040].map(Place.stored).contains(last))
        #expect(try place.names == ["token.json"])
    }

    @Test func `a relative path is resolved when the store is made`() {
        let path = FileTokenStore(path: "some/token.json").path
        #expect(path == FileManager.default.currentDirectoryPath + "/some/token.json")
    }
}
