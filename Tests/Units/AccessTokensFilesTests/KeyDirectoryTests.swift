import AccessTokens
import AccessTokensKeys
import AccessTokensSharedFiles
import AccessTokensSharing
import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@testable import AccessTokensFiles

@Suite("Guarantees 22 and 24: a directory of keys that can't be read, or isn't the user's own")
struct KeyDirectoryTests {
    /// The stores of one owner, and those that processes share: they keep their keys in the same way.
    enum Kind: CaseIterable { case single, shared }

    private let place: Place

    init() throws {
        place = try Place()
    }

    private func path(_ key: String) -> String { place.directory + "/" + SHA256.hexadecimal(of: key) }

    /// Saves the key's own name as its token.
    private func save(_ key: String, _ kind: Kind) async throws {
        switch kind {
        case .single:
            let token = StoredToken(AccessToken(key, refreshToken: Place.secret), received: Date())
            try await FileTokenStores<String>(directory: place.directory).store(for: key).save(token)
        case .shared:
            let store = SharedFileTokenStores<String>(directory: place.directory).store(for: key)
            let record = try await store.load()
            guard case .done = try await store.swap(Data(key.utf8), ifAt: record?.revision) else { throw CancellationError() }
        }
    }

    private func load(_ key: String, _ kind: Kind) async throws -> String? {
        switch kind {
        case .single: try await FileTokenStores<String>(directory: place.directory).store(for: key).load()?.token.value
        case .shared:
            try await SharedFileTokenStores<String>(directory: place.directory).store(for: key).load()
                .map { String(decoding: $0.bytes, as: UTF8.self) }
        }
    }

    private func keys(_ kind: Kind) async throws -> [String] {
        switch kind {
        case .single: try await FileTokenStores<String>(directory: place.directory).storedKeys()
        case .shared: try await SharedFileTokenStores<String>(directory: place.directory).storedKeys()
        }
    }

    /// The codes of a load, a change, a list of the keys and, where there is one, a removal.
    private func codes(_ key: String, _ kind: Kind) async -> [String?] {
        var codes = [
            await failure { _ = try await load(key, kind) }?.code, await failure { try await save(key, kind) }?.code,
            await failure { _ = try await keys(kind) }?.code,
        ]
        if kind == .single {
            let store = FileTokenStores<String>(directory: place.directory).store(for: key)
            codes.append(await failure { try await store.remove() }?.code)
        }
        return codes.map { $0?.rawValue }
    }

    private func setMode(_ mode: Int, of path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private func mode(of path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test(arguments: ["a file", "nowhere", "itself", "elsewhere"], Kind.allCases)
    func `a file or a link in place of a key's directory is an error, and is not followed`(what: String, kind: Kind) async throws
    {
        try await save("Anna", kind)
        try FileManager.default.moveItem(atPath: path("Anna"), toPath: place.directory + "/elsewhere")
        switch what {
        case "a file": try Data("x".utf8).write(to: URL(fileURLWithPath: path("Anna")))
        case "itself": try FileManager.default.createSymbolicLink(atPath: path("Anna"), withDestinationPath: path("Anna"))
        default: try FileManager.default.createSymbolicLink(atPath: path("Anna"), withDestinationPath: what)
        }
        let found = await codes("Anna", kind)
        #expect(found.allSatisfy { $0 == "noDirectory" }, "\(found)")
        let error = try #require(await failure { _ = try await load("Anna", kind) })
        #expect("\(error)".contains(path("Anna")))
    }

    @Test func `a sign-out that can't read the directory fails, and the token can still be signed out later`() async throws {
        let services = TokenServices<String>(
            keepingIdle: 0, stores: FileTokenStores(directory: place.directory), environment: .init(clock: ManualClock())
        ) { _, _ in throw CancellationError() }
        try await save("Anna", .single)
        try FileManager.default.moveItem(atPath: path("Anna"), toPath: place.directory + "/elsewhere")
        try FileManager.default.createSymbolicLink(atPath: path("Anna"), withDestinationPath: "nowhere")
        let held = services["Anna"]
        defer { withExtendedLifetime(held) {} }
        #expect(await services["Anna"].reset().storeFailure != nil)
        #expect(await services.reset { _ in true }.storeFailure != nil)
        await #expect(throws: TokenServiceError.self) { try await services["Berta"].retrieveToken() }
        try FileManager.default.removeItem(atPath: path("Anna"))
        try FileManager.default.moveItem(atPath: place.directory + "/elsewhere", toPath: path("Anna"))
        #expect(await services.reset { _ in true }.changes["Anna"]?.discarded.map(\.value) == ["Anna"])
    }

    @Test func `without permission to read the directory, no user counts as signed out`() async throws {
        let output = try await Rotation(in: place).lookWithoutPermission()
        #expect(
            output == """
                600 on all: noDirectory noDirectory noDirectory noDirectory
                600 on one: unreadable unreadable unreadable unreadable
                000 on one: noDirectory noDirectory noDirectory noDirectory
                700: SECRET

                """)
    }

    @Test(arguments: Kind.allCases)
    func `two directories that were exchanged give no key the other's token`(kind: Kind) async throws {
        for key in ["Anna", "Berta", "Carla"] { try await save(key, kind) }
        try FileManager.default.moveItem(atPath: path("Anna"), toPath: place.directory + "/meanwhile")
        try FileManager.default.moveItem(atPath: path("Berta"), toPath: path("Anna"))
        try FileManager.default.moveItem(atPath: place.directory + "/meanwhile", toPath: path("Berta"))
        for key in ["Anna", "Berta"] {
            let found = await codes(key, kind)
            #expect(found.allSatisfy { $0 == "otherKey" }, "\(found)")
        }
        #expect(try await load("Carla", kind) == "Carla")
        try FileManager.default.moveItem(atPath: path("Anna"), toPath: place.directory + "/meanwhile")
        try FileManager.default.moveItem(atPath: path("Berta"), toPath: path("Anna"))
        try FileManager.default.moveItem(atPath: place.directory + "/meanwhile", toPath: path("Berta"))
        for key in ["Anna", "Berta"] { #expect(try await load(key, kind) == key) }
    }

    @Test(arguments: [0o770, 0o777, 0o755], Kind.allCases)
    func `a user's own directory that others may enter or change is closed to them`(mode: Int, kind: Kind) async throws {
        try await save("Anna", kind)
        for operation in 0..<3 {
            try setMode(mode, of: path("Anna"))
            try setMode(mode, of: place.directory)
            switch operation {
            case 0: #expect(try await load("Anna", kind) == "Anna")
            case 1: try await save("Anna", kind)
            default: #expect(try await keys(kind) == ["Anna"])
            }
            #expect(try self.mode(of: path("Anna")) == 0o700)
            // Others may list the directory of all keys, whose names are hashes.
            #expect(try self.mode(of: place.directory) == mode & 0o755)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"), arguments: Kind.allCases)
    func `a directory that belongs to another user is an error, and what is in it stays`(kind: Kind) async throws {
        try await save("Anna", kind)
        for path in [path("Anna"), place.directory] {
            try #require(unsafe chown(path, 12345, getgid()) == 0)
            let found = await codes("Anna", kind)
            #expect(found.allSatisfy { $0 == "foreignOwner" }, "\(found)")
            let error = try #require(await failure { _ = try await load("Anna", kind) })
            #expect("\(error)".contains("it belongs to user 12345, and the program runs as user 0"))
            try #require(unsafe chown(path, 0, getgid()) == 0)
        }
        #expect(try await load("Anna", kind) == "Anna")
    }

    @Test(arguments: Kind.allCases)
    func `a damaged or missing key name is an error, and the other keys are still found`(kind: Kind) async throws {
        for key in ["Anna", "Berta", "Carla"] { try await save(key, kind) }
        try Data("{".utf8).write(to: URL(fileURLWithPath: path("Anna") + "/key"))
        try FileManager.default.removeItem(atPath: path("Berta") + "/key")
        let error = try #require(await failure { _ = try await keys(kind) })
        #expect(error.code == .damaged && [path("Anna"), path("Berta")].contains { error.path.hasPrefix($0) })
        // A caller that asks for a key knows its name.
        for key in ["Anna", "Berta"] { #expect(try await load(key, kind) == key) }
        for key in ["Anna", "Berta"] { try await save(key, kind) }
        #expect(try await keys(kind).sorted() == ["Anna", "Berta", "Carla"])
    }
}
