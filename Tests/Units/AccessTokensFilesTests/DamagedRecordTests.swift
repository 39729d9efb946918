import AccessTokens
import AccessTokensFiles
import AccessTokensSharedFiles
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import TestBudgets
import Testing

@Suite("A shared record that is damaged says where it is, and a sign-in replaces it") struct DamagedRecordTests {
    private let place: Place
    private static let aside = ".token.json.damaged"

    init() throws {
        place = try Place()
    }

    private var service: TokenService {
        TokenService(sharedStore: SharedFileTokenStore(path: place.path), environment: .init(clock: PatientClock())) { _ in
            AccessToken("loaded")
        }
    }

    /// Lets a service read the record, and then another user sign in over it.
    private func checkThatSignInReplaces(_ bytes: [UInt8]) async throws {
        try place.put(bytes)
        let error = try #require(await #expect(throws: TokenServiceError.self) { try await service.retrieveToken() })
        #expect(error.code == .storeFailed)
        let failure = try #require(error.underlying as? TokenFileError)
        #expect(failure.code == .damaged && failure.path == place.path)
        #expect("\(error)".contains(place.path) && !"\(error)".contains(Place.secret))
        #expect(try place.bytes == bytes, "a look changes nothing")
        #expect(try !place.names.contains(Self.aside))

        let change = await service.replace(with: AccessToken("signed in", lifetime: .seconds(3600)))
        #expect(change.storeFailure == nil)
        #expect(try await service.retrieveToken().value == "signed in")
        if !bytes.isEmpty {
            #expect(try Array(Data(contentsOf: URL(fileURLWithPath: place.directory + "/" + Self.aside))) == bytes)
            #expect(try place.mode(of: Self.aside) == 0o600)
            try FileManager.default.removeItem(atPath: place.directory + "/" + Self.aside)
        }
    }

    private func record() async throws -> [UInt8] {
        _ = await service.replace(with: AccessToken("before", lifetime: .seconds(3600), refreshToken: Place.secret))
        return try place.bytes
    }

    @Test func `a record cut off at any byte is damaged`() async throws {
        let whole = try await record()
        for length in stride(from: 0, to: whole.count, by: Int.everyday(23, thorough: 1)) + [whole.count - 1] {
            try await checkThatSignInReplaces(Array(whole.prefix(length)))
        }
    }

    @Test func `a record that the disk has filled with zeros, or altered, is damaged`() async throws {
        let whole = try await record()
        let end = try #require(whole.firstIndex(of: UInt8(ascii: "\n")))
        try await checkThatSignInReplaces(whole[...end] + Array(repeating: 0, count: whole.count - end - 1))
        var altered = whole
        altered[whole.count - 10] ^= 1
        try await checkThatSignInReplaces(altered)
    }

    @Test func `a sign-out replaces a damaged record, too, and stays a fence`() async throws {
        let whole = try await record()
        try place.put(whole.dropLast(20))
        #expect(await service.reset().storeFailure == nil)
        #expect(try await service.retrieveToken().value == "loaded")
    }

    @Test func `a file that no shared store has written is neither replaced nor set aside`() async throws {
        for bytes in [Array("somebody's notes".utf8), Array("tokenservice.shared 2 7.x\nlater".utf8)] {
            try place.put(bytes)
            let change = await service.replace(with: AccessToken("signed in"))
            #expect(change.storeFailure != nil)
            #expect(try place.bytes == bytes)
            #expect(try place.names == ["token.json"])
        }
    }
}
