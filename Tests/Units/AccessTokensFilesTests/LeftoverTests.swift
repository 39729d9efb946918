import AccessTokens
import AccessTokensFiles
import Foundation
import Testing

@Suite("What a killed process left beside the token file")
struct LeftoverTests {
    private let place: Place
    private static let leftovers = [".token.json.0123456789abcdef.tmp", ".token.json.ffffffffffffffff.tmp"]
    private static let others = [
        ".token.json.0123456789abcde.tmp", ".token.json.0123456789abcdeg.tmp", ".token.json.tmp", ".other.0123456789abcdef.tmp",
        "token.json.0123456789abcdef.tmp", ".token.json.0123456789abcdef.tmp~",
    ]

    init() throws {
        place = try Place()
        for name in Self.leftovers + Self.others { try place.put([1, 2, 3], as: name) }
    }

    @Test func `a load does not read what a killed process left`() async throws {
        #expect(try await place.store.load() == nil)
    }

    @Test func `a save removes what a killed process left, and no unrelated file`() async throws {
        try await place.store.save(Place.stored())
        #expect(try place.names == (Self.others + ["token.json"]).sorted())
    }

    @Test func `a removal removes what a killed process left, even without a token file`() async throws {
        try await place.store.remove()
        #expect(try place.names == Self.others.sorted())
    }

    @Test func `a leftover that can't be removed makes neither a save nor a removal fail`() async throws {
        let name = Self.leftovers[0]
        try FileManager.default.removeItem(atPath: place.directory + "/" + name)
        try FileManager.default.createDirectory(atPath: place.directory + "/" + name, withIntermediateDirectories: false)
        try place.put([1], as: name + "/file")
        try await place.store.save(Place.stored())
        try await place.store.remove()
        #expect(try place.names == (Self.others + [name]).sorted())
    }

    @Test func `the temporary file of a running save stays until its lock is released`() async throws {
        let name = Self.leftovers[0]
        let other = try FileHandle(forReadingFrom: URL(fileURLWithPath: place.directory + "/" + name))
        try #require(flock(other.fileDescriptor, LOCK_EX) == 0)
        try await place.store.save(Place.stored())
        try await place.store.remove()
        #expect(try place.names == (Self.others + [name]).sorted())
        // Unlock it, not only close it: a process started by another test may have inherited the descriptor.
        try #require(flock(other.fileDescriptor, LOCK_UN) == 0)
        try await place.store.remove()
        #expect(try place.names == Self.others.sorted())
    }
}
