import AccessTokens
import AccessTokensFiles
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite("A file that isn't a whole token file is an error, and only a damaged one is replaced and kept")
struct DamagedFileTests {
    private let place: Place

    init() throws {
        place = try Place()
    }

    /// Loads the file, which changes nothing, and saves over it: a damaged file is set aside, and any other is left unchanged.
    private func code(saving isSaving: Bool = true) async throws -> TokenFileError.Code? {
        let (store, bytes) = (place.store, try place.bytes)
        let loading = await failure { _ = try await store.load() }
        #expect(loading?.path == place.path)
        #expect(try place.bytes == bytes)
        guard isSaving else { return loading?.code }
        let saving = await failure { try await store.save(Place.stored(2)) }
        guard loading?.code == .damaged else {
            #expect(loading?.code == saving?.code)
            #expect(try place.bytes == bytes)
            #expect(try place.names == ["token.json"])
            return loading?.code
        }
        #expect(saving == nil)
        #expect(try await store.load() == Place.stored(2))
        let aside = ".token.json.damaged"
        #expect(try place.names == (bytes.isEmpty ? [] : [aside]) + ["token.json"])
        if !bytes.isEmpty {
            #expect(try Array(Data(contentsOf: URL(fileURLWithPath: place.directory + "/" + aside))) == bytes)
            #expect(try place.mode(of: aside) == 0o600)
        }
        return .damaged
    }

    @Test func `a file cut off at any byte is damaged, a save sets it aside, and a removal leaves nothing of it`() async throws {
        try await place.store.save(Place.stored())
        let whole = try place.bytes
        for length in 0..<whole.count {
            try place.put(whole.prefix(length))
            let isSaving = length % Int.everyday(4, thorough: 1) == 0
            #expect(try await code(saving: isSaving) == .damaged, "cut off after \(length) bytes")
            try await place.store.remove()
            #expect(try place.names == [])
        }
        try place.put(whole)
        #expect(try await place.store.load() == Place.stored(), "the whole one is good")
    }

    @Test func `a file with one bit flipped anywhere loads or fails, and never crashes`() async throws {
        try await place.store.save(Place.stored())
        let whole = try place.bytes
        for index in whole.indices {
            var bytes = whole
            bytes[index] ^= 1 << (index % 8)
            try place.put(bytes)
            let store = place.store
            _ = await failure { _ = try await store.load() }
        }
    }

    static let foreignFiles: [[UInt8]] = [
        Array("{}".utf8), Array("hello SECRET".utf8), Array(#"{"format":"other","version":1}"#.utf8), [0], [0xff, 0xfe, 0x7b, 0],
        Array(repeating: 0, count: 500), Array(#" {"format":"tokenservice.token","version":1}"#.utf8),
    ]

    @Test(arguments: foreignFiles)
    func `a foreign file is neither read, nor overwritten, nor removed`(_ bytes: [UInt8]) async throws {
        try place.put(bytes)
        #expect(try await code() == .notATokenFile)
        let store = place.store
        #expect(await failure { try await store.remove() }?.code == .notATokenFile)
        #expect(try place.bytes == bytes)
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `random bytes, alone or after a token file's beginning, are an error`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let marker = Array(#"{"format":"tokenservice.token","#.utf8)
        for round in 0..<25 {
            // Short ones are more frequent: a single brace is a truncated token file.
            let tail = (0..<Int.random(in: 1...(round < 5 ? 2 : 2000), using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            let bytes = round % 2 == 0 ? tail : marker + tail
            for name in try place.names { try FileManager.default.removeItem(atPath: place.directory + "/" + name) }
            try place.put(bytes)
            #expect(try await code() == (bytes.starts(with: marker) || marker.starts(with: bytes) ? .damaged : .notATokenFile))
        }
    }

    @Test func `a damaged file is removed by a sign-out, which sets nothing aside`() async throws {
        try place.put(#"{"format":"tokenservice.token","SECRET"#.utf8)
        try await place.store.remove()
        #expect(try place.names == [])
    }

    @Test func `the error of a damaged file says where it is, and that a sign-in replaces and keeps it`() async throws {
        try place.put("{".utf8)
        let store = place.store
        let text = "\(try #require(await failure { _ = try await store.load() }))"
        #expect(text.contains(place.path) && text.contains("sign in again") && text.contains(".token.json.damaged"))
    }

    @Test func `the first byte of a token file counts as a token file that was cut off`() async throws {
        try place.put("{".utf8)
        #expect(try await code() == .damaged)
    }

    static let damagedFiles = [
        #"{"format":"tokenservice.token","version":"1"}"#, #"{"format":"tokenservice.token","version":1}"#,
        #"{"format":"tokenservice.token","received":1e999,"token":{"tokenType":"b","value":"SECRET"},"version":1}"#,
        #"{"format":"tokenservice.token","received":1,"token":{"tokenType":"SECRET","value":7},"version":1}"#,
        #"{"format":"tokenservice.token","received":1,"token":{"tokenType":"b","value":"SECRET"},"version":1} SECRET"#,
        #"{"format":"tokenservice.token","x":"# + String(repeating: "[", count: 100_000),
    ]

    @Test(arguments: damagedFiles)
    func `a file that begins like a token file and continues wrong is damaged`(_ text: String) async throws {
        try place.put(text.utf8)
        #expect(try await code() == .damaged)
    }

    @Test func `a file of a later version isn't reported as damaged, and a sign-out removes it`() async throws {
        try place.put(#"{"format":"tokenservice.token","sealed":"SECRET","version":2}"#.utf8)
        #expect(try await code() == .unsupportedVersion)
        try await place.store.remove()
        #expect(try place.names == [])
    }

    @Test func `a file too large for a token is not read to its end`() async throws {
        try place.put(Array(#"{"format":"tokenservice.token","#.utf8) + Array(repeating: 32, count: 1 << 20))
        #expect(try await code() == .notATokenFile)
    }

    private struct Loader: TokenLoader {
        let isRepeatable: Bool

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            AccessToken("loaded", lifetime: .seconds(3_600))
        }
    }

    @Test(arguments: [
        "", #"{"format":"tokenservice.token","#, "[section]", #"{"format":"tokenservice.token","sealed":"SECRET","version":2}"#,
    ])
    func `55: a repeatable service goes on without an unreadable file, and saves only over a damaged one`(
        _ text: String
    ) async throws {
        try place.put(text.utf8)
        let service = TokenService(store: place.store, loader: Loader(isRepeatable: true))
        for _ in 0..<3 { #expect(try await service.retrieveToken().value == "loaded") }
        let isDamaged = text.isEmpty || text.hasSuffix(",")
        #expect(await (try? place.store.load())?.token.value == (isDamaged ? "loaded" : nil))
        if !isDamaged { #expect(try place.bytes == Array(text.utf8)) }
    }

    @Test func `55: a service with a damaged file asks for a sign-in, which replaces the file`() async throws {
        try place.put("".utf8)
        let service = TokenService(store: place.store, loader: Loader(isRepeatable: false))
        let error = await #expect(throws: TokenServiceError.self) { try await service.retrieveToken() }
        #expect(error?.code == .storeFailed && error?.remedy == .signIn)
        #expect(await service.signInState().code == .signedOut)
        await service.replace(with: AccessToken("new", lifetime: .seconds(3_600), refreshToken: "grant"))
        #expect(try await place.store.load()?.token.value == "new")
    }
}
