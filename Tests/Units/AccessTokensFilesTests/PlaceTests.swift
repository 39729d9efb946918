import AccessTokens
import AccessTokensFiles
import Foundation
import Testing

@Suite("A place that cannot hold a token file is a clear error")
struct PlaceTests {
    private let place: Place

    init() throws {
        place = try Place()
    }

    /// The codes of a load, a save and a removal.
    private func codes(_ path: String) async -> [TokenFileError.Code?] {
        let store = FileTokenStore(path: path)
        return [
            await failure { _ = try await store.load() }?.code,
            await failure { try await store.save(Place.stored()) }?.code,
            await failure { try await store.remove() }?.code,
        ]
    }

    @Test(arguments: ["", "/", "/tmp/", "/tmp/.", "/tmp/..", "/tmp/a\u{0}b"])
    func `a path that does not name a file is an error`(_ path: String) async {
        #expect(await codes(path) == [.invalidPath, .invalidPath, .invalidPath])
    }

    @Test func `a name too long for the temporary file is an error at once, before a token is loaded in vain`() async {
        let (longest, tooLong) = (String(repeating: "n", count: 231), String(repeating: "n", count: 232))
        #expect(await codes(place.directory + "/" + longest) == [nil, nil, nil])
        #expect(await codes(place.directory + "/" + tooLong) == [.invalidPath, .invalidPath, .invalidPath])
    }

    @Test func `a NUL in a path is an error with a reason of its own`() async throws {
        let store = FileTokenStore(path: place.path + "\u{0}.json")
        let error = try #require(await failure { try await store.save(Place.stored()) })
        #expect("\(error)".contains("it contains a NUL"))
        #expect(try place.names == [])
    }

    @Test func `a relative path in a deleted working directory saves nothing, not even in the root directory`() async throws {
        let name = "token-\(UUID().uuidString).json"
        defer { try? FileManager.default.removeItem(atPath: "/" + name) }
        let output = try await Rotation(in: place).saveOnceNowhere(at: name)
        #expect(
            output == #""\#(name)" can't be the path of a token file: it is relative, and the working directory was deleted. "#
                + "Give the path of a file in an existing directory.\n")
        #expect(!FileManager.default.fileExists(atPath: "/" + name))
    }

    @Test func `another user's file is neither read, nor overwritten, nor removed, whatever it holds`() async throws {
        try await place.store.save(Place.stored())
        // Root can give a token file to another user; other users read a file that belongs to root.
        let owner: uid_t = geteuid() == 0 ? 12345 : 0
        let path = geteuid() == 0 ? place.path : "/etc/passwd"
        if geteuid() == 0 { try #require(unsafe chown(path, owner, getgid()) == 0) }
        #expect(await codes(path) == [.foreignOwner, .foreignOwner, .foreignOwner])
        let store = FileTokenStore(path: path)
        let error = try #require(await failure { _ = try await store.load() })
        #expect("\(error)".contains("it belongs to user \(owner), and the program runs as user \(geteuid())"))
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test func `a missing directory, or a file in its place, doesn't count as an empty store`() async throws {
        #expect(await codes(place.directory + "/missing/token.json") == [.noDirectory, .noDirectory, .noDirectory])
        try place.put([1], as: "file")
        #expect(await codes(place.directory + "/file/token.json") == [.noDirectory, .noDirectory, .noDirectory])
    }

    @Test func `a symbolic link is neither followed nor replaced, wherever it leads`() async throws {
        try await FileTokenStore(path: place.directory + "/other").save(Place.stored())
        for target in ["other", "nowhere"] {
            try FileManager.default.createSymbolicLink(atPath: place.path, withDestinationPath: target)
            #expect(await codes(place.path) == [.notATokenFile, .notATokenFile, .notATokenFile])
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: place.path) == target)
            try FileManager.default.removeItem(atPath: place.path)
        }
    }

    @Test func `a directory or a pipe in place of the file stays, and no operation waits for the pipe's other end`() async throws
    {
        try FileManager.default.createDirectory(atPath: place.path, withIntermediateDirectories: false)
        #expect(await codes(place.path) == [.notATokenFile, .notATokenFile, .notATokenFile])
        try FileManager.default.removeItem(atPath: place.path)
        try #require(unsafe mkfifo(place.path, 0o600) == 0)
        #expect(await codes(place.path) == [.notATokenFile, .notATokenFile, .notATokenFile])
        #expect(try place.names == ["token.json"])
    }

    #if os(Linux)
    @Test func `a directory in which no file can be made holds no token, and a save there fails`() async {
        #expect(await codes("/proc/token.json") == [nil, .writeFailed, nil])
    }
    #endif

    @Test(.enabled(if: geteuid() != 0, "root ignores modes"))
    func `a directory that its permissions close to this user is an error`() async throws {
        try await place.store.save(Place.stored(1))
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: place.directory)
        #expect(await codes(place.path) == [nil, .writeFailed, .removeFailed])
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: place.directory)
    }

    @Test(arguments: [0, 1, 100])
    func `a disk that fills up after any number of bytes leaves the earlier token, and nothing else`(_ limit: Int) async throws {
        try await place.store.save(Place.stored(1))
        let output = try await Rotation(in: place).saveOnce(limit: limit, umask: "022")
        #expect(output.contains("was not written") && !output.contains(Place.secret))
        #expect(try await place.store.load() == Place.stored(1))
        #expect(try place.names == ["token.json"])
    }

    @Test func `a token that no file can hold is an error, and the earlier one stays`() async throws {
        let store = place.store
        try await store.save(Place.stored(1))
        let never = [Double.infinity, -.infinity, .nan].map {
            StoredToken(AccessToken("SECRET"), received: Date(timeIntervalSinceReferenceDate: $0))
        }
        let huge = StoredToken(AccessToken(String(repeating: "SECRET", count: 200_000)), received: Date())
        for stored in never + [huge] {
            #expect(await failure { try await store.save(stored) }?.code == .writeFailed)
        }
        #expect(try await store.load() == Place.stored(1))
    }

    @Test func `an error of a token file says what is wrong and what to do, with the system's number`() async throws {
        let store = FileTokenStore(path: "/nowhere\n/token.json")
        let error = try #require(await failure { try await store.save(Place.stored()) })
        #expect(error.systemError == ENOENT)
        #expect(
            "\(error)" == #"The directory of the token file "/nowhere\n/token.json" cannot be opened: "#
                + "No such file or directory. Create or mount it.")
    }
}
