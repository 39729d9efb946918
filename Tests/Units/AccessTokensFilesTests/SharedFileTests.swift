import AccessTokens
import AccessTokensFiles
@testable import AccessTokensSharedFiles
import AccessTokensSharing
import Foundation
import TestBudgets
import Testing

@Suite("A shared token store in a file")
struct SharedFileTests {
    private let place: Place

    init() throws {
        place = try Place()
    }

    private var store: SharedFileTokenStore { SharedFileTokenStore(path: place.path) }

    @Test func `the longest name of a file leaves room for those of the lock and the holder`() async throws {
        let store = SharedFileTokenStore(path: place.directory + "/" + String(repeating: "n", count: 231))
        guard case .done = try await store.swap(Data("x".utf8), ifAt: nil) else { throw CancellationError() }
        #expect(await store.holder != nil)
    }

    @Test func `a swap replaces a record only at its current revision`() async throws {
        #expect(try await store.load() == nil)
        guard case .done(let first) = try await store.swap(Data("one".utf8), ifAt: nil) else { throw Unexpected() }
        #expect(try await store.load() == SharedRecord(Data("one".utf8), revision: first))
        #expect(try await store.swap(Data("two".utf8), ifAt: nil) == .conflict(SharedRecord(Data("one".utf8), revision: first)))
        guard case .done(let second) = try await store.swap(Data("two".utf8), ifAt: first) else { throw Unexpected() }
        #expect(first != second)
        #expect(try await store.load()?.bytes == Data("two".utf8))
        #expect(try place.names == ["token.json"])
        #expect(try place.mode() == 0o600)
    }

    @Test func `no count is lost when many stores at one path count at once`() async throws {
        let path = place.path
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let store = SharedFileTokenStore(path: path)
                    for _ in 0..<25 {
                        var record = try await store.load()
                        while true {
                            let count = record.flatMap { Int(String(decoding: $0.bytes, as: UTF8.self)) } ?? 0
                            do {
                                let result = try await store.swap(Data("\(count + 1)".utf8), ifAt: record?.revision)
                                guard case .conflict(let other) = result else { break }
                                record = other
                            } catch let error as TokenFileError where error.code == .locked {
                                // On a busy disk the others' swaps may take longer than a store's patience.
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await store.load()?.bytes == Data("200".utf8))
    }

    @Test func `a file that isn't a shared record stays as it is`() async throws {
        try place.put(Array("somebody's notes".utf8))
        await #expect(throws: TokenFileError.self) { try await store.load() }
        await #expect(throws: TokenFileError.self) { try await store.swap(Data(), ifAt: nil) }
        #expect(try place.bytes == Array("somebody's notes".utf8))
    }

    @Test func `a record has an age, also for a process that starts later`() async throws {
        _ = try await store.swap(Data("one".utf8), ifAt: nil)
        let time = try #require(BootTime.now)
        try place.put(Array("tokenservice.shared 1 7.x \(time.boot) \(time.uptime - 61_000) \(time.wall)\nold".utf8))
        let record = try #require(try await store.load())
        #expect(record == SharedRecord(Data("old".utf8), revision: .init("7.x")))
        #expect(try #require(record.age) >= .seconds(61) && record.isAgeSteady)
        guard case .done = try await store.swap(Data("new".utf8), ifAt: record.revision) else { throw Unexpected() }
        let next = try #require(try await store.load()?.age)
        #expect(next >= .zero && next < record.age ?? .zero)
    }

    @Test func `after a restart of the machine a record's age depends on the time of day`() async throws {
        try place.put(Array("tokenservice.shared 1 7.x before 61000 61000\nold".utf8))
        let record = try #require(try await store.load())
        #expect(record.age != nil && !record.isAgeSteady)
    }

    @Test(arguments: ["", " a 1", " a b c", " a -1 1", " a 1 1 1"])
    func `a record without a time of its own, or with one that can't be read, has no age`(words: String) async throws {
        try place.put(Array("tokenservice.shared 1 7.x\(words)\nold".utf8))
        let record = try await store.load()
        #expect(record == SharedRecord(Data("old".utf8), revision: .init("7.x")))
        #expect(record?.age == nil)
        guard case .done(let next) = try await store.swap(Data("new".utf8), ifAt: .init("7.x")) else { throw Unexpected() }
        #expect(next.text.hasPrefix("8."))
    }

    @Test(arguments: [
        (BootTime(boot: "now", uptime: 400, wall: 0), 600), (BootTime(boot: "now", uptime: 1_001, wall: 0), 0),
        (BootTime(boot: "before", uptime: 5_000, wall: 49_700), 300), (BootTime(boot: "before", uptime: 0, wall: 0), 1_000),
        (BootTime(boot: "before", uptime: 0, wall: 50_001), 0),
    ])
    func `an age is never negative, and never longer than the machine has been running`(then: BootTime, age: Int) {
        #expect(then.age(at: BootTime(boot: "now", uptime: 1_000, wall: 50_000)) == .milliseconds(age))
    }

    @Test func `a service presents the token at once if another's mark is older than the doubt`() async throws {
        let store = store, place = place, environment = environment
        let next = TokenService(sharedStore: store, environment: environment) { _ in AccessToken("next") }
        let first = TokenService(sharedStore: store, environment: environment) { _ in
            // As if it had been loading for 121 s.
            let time = try #require(BootTime.now), bytes = try place.bytes
            let end = try #require(bytes.firstIndex(of: UInt8(ascii: "\n")))
            let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
            let header = "\(words[0]) \(words[1]) \(words[2]) \(time.boot) \(time.uptime - 121_000) \(time.wall)"
            try place.put(Array(header.utf8) + bytes[end...])
            let token = try await next.retrieveToken()
            #expect(token.value == "next")
            return AccessToken("first")
        }
        #expect(try await first.retrieveToken().value == "next")
    }

    @Test func `a holder counts as running as long as its store lives`() async throws {
        var other: SharedFileTokenStore? = store
        let holder = try #require(await other?.holder)
        #expect(await other?.holder == holder)
        #expect(await store.isRunning(holder) == true)
        other = nil
        #expect(await store.isRunning(holder) == false)
        #expect(await store.isRunning("../../etc/passwd") == true)
    }

    @Test func `a new holder removes the files of processes that ended without removing theirs, and no others`() async throws {
        let living = store
        let holder = try #require(await living.holder)
        let ended = (0..<5).map { ".token.json.000000000000000\($0).alive" }
        let others = [
            ".token.json.lock", ".token.json.00000000000000.alive", ".other.json.0000000000000000.alive", "notes.alive",
        ]
        for name in ended + others { try Data().write(to: URL(fileURLWithPath: place.directory + "/" + name)) }
        let next = store
        let own = try #require(await next.holder)
        let left = [".token.json.\(holder).alive", ".token.json.\(own).alive"] + others
        #expect(try place.names == left.sorted())
    }

    @Test func `a holder that has ended counts as ended, even while another process has its file open`() async throws {
        let name = "0123456789abcdef", path = place.directory + "/.token.json.\(name).alive"
        try Data().write(to: URL(fileURLWithPath: path))
        let other = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        defer { try? other.close() }
        #expect(flock(other.fileDescriptor, LOCK_SH | LOCK_NB) == 0)
        #expect(await store.isRunning(name) == false)
        #expect(try place.names == [])
    }

    @Test func `a holder whose file was removed makes another, so that no living process looks dead`() async throws {
        let store = store
        let first = try #require(await store.holder)
        try FileManager.default.removeItem(atPath: "\(place.directory)/.token.json.\(first).alive")
        #expect(await store.isRunning(first) == false)
        let second = try #require(await store.holder)
        #expect(second != first)
        #expect(await store.isRunning(second) == true)
        #expect(await store.holder == second)
    }

    // Judged by its date, a lock from the future would be respected forever, and an old one would be stolen from a slow holder.
    @Test(arguments: [0, 4_102_444_800])
    func `the dates of locks and holders' files don't matter, even if they are in the future`(date: TimeInterval) async throws {
        let living = store, ended = "0123456789abcdef"
        let holder = try #require(await living.holder)
        guard case .done(let first) = try await living.swap(Data("one".utf8), ifAt: nil) else { throw Unexpected() }
        for name in [".token.json.lock", ".token.json.\(ended).alive"] {
            try Data().write(to: URL(fileURLWithPath: place.directory + "/" + name))
        }
        for name in try place.names {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: date)], ofItemAtPath: place.directory + "/" + name)
        }
        #expect(await store.isRunning(holder) == true)
        #expect(await store.isRunning(ended) == false)
        guard case .done(let second) = try await store.swap(Data("two".utf8), ifAt: first) else { throw Unexpected() }
        #expect(try await living.load() == SharedRecord(Data("two".utf8), revision: second))
    }

    @Test func `many holders that begin at once all keep their files`() async throws {
        let path = place.path
        let stores = (0..<32).map { _ in SharedFileTokenStore(path: path) }
        let holders = await withTaskGroup(of: String?.self) { group in
            for store in stores { group.addTask { await store.holder } }
            return await group.reduce(into: [String]()) { if let name = $1 { $0.append(name) } }
        }
        #expect(Set(holders).count == 32)
        for holder in holders { #expect(await store.isRunning(holder) == true) }
        withExtendedLifetime(stores) {}
    }

    @Test func `two services over one file load once`() async throws {
        let loads = Counter()
        let services = (0..<4).map { _ in
            TokenService(sharedStore: store, environment: environment, loader: CountingLoader(counter: loads))
        }
        let tokens = try await withThrowingTaskGroup(of: String.self) { group in
            for service in services { group.addTask { try await service.retrieveToken().value } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(tokens == ["access-1"])
        #expect(await loads.count == 1)
    }

    private var environment: TokenService.Environment { .init(clock: PatientClock()) }

    private struct Unexpected: Error {}

    private actor Counter {
        var count = 0
        func next() -> Int {
            count += 1
            return count
        }
    }

    private struct CountingLoader: TokenLoader {
        let counter: Counter

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            let number = await counter.next()
            try await Task.sleep(for: .milliseconds(20))
            return AccessToken("access-\(number)", lifetime: .seconds(3600), refreshToken: "refresh-\(number)")
        }
    }
}
