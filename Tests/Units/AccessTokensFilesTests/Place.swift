import AccessTokens
import AccessTokensFiles
import Foundation
import Testing
import TokenServiceConcurrency

/// A directory for one test, removed together with this value.
final class Place: Sendable {
    let directory: String

    init(in parent: String = FileManager.default.temporaryDirectory.path) throws {
        directory = parent + "/token-files-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Where the token file is, if there is one.
    var path: String { directory + "/token.json" }

    var store: FileTokenStore { FileTokenStore(path: path) }

    /// The names of everything in the directory, sorted.
    var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: directory).sorted() } }

    var bytes: [UInt8] { get throws { Array(try Data(contentsOf: URL(fileURLWithPath: path))) } }

    /// Writes bytes in place of the token file, or next to it.
    func put(_ bytes: some Sequence<UInt8>, as name: String = "token.json") throws {
        try Data(bytes).write(to: URL(fileURLWithPath: directory + "/" + name))
    }

    func setMode(_ mode: Int) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    func mode(of name: String = "token.json") throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: directory + "/" + name)
        return try #require(attributes[.posixPermissions] as? NSNumber).intValue
    }

    /// The value that no text may show in any of the tests.
    static let secret = "SECRET"

    static func stored(_ number: Int = 0) -> StoredToken {
        let token = AccessToken(
            "SECRET-access-\(number)", lifetime: .seconds(3600), scope: "read", refreshToken: "SECRET-refresh-\(number)")
        return StoredToken(token, received: Date(timeIntervalSinceReferenceDate: 800_000_000.123456))
    }
}

/// Returns an operation's error, which must be a store's, after checking all of its texts for secrets.
func failure(of operation: () async throws -> Void) async -> TokenFileError? {
    do {
        try await operation()
        return nil
    } catch {
        var dumped = ""
        dump(error, to: &dumped)
        for text in ["\(error)", String(reflecting: error), error.localizedDescription, dumped] {
            #expect(!text.contains(Place.secret), "an error shows what the file holds")
        }
        let failure = error as? TokenFileError
        #expect(failure == nil || error.localizedDescription == failure?.description)
        return failure
    }
}
