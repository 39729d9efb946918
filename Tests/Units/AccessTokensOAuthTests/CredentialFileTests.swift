import AccessTokensHTTP
import AccessTokens
import Foundation
import Testing
import TokenServiceConcurrency

@testable import AccessTokensOAuth

final class CredentialFileTests {
    let directory = FileManager.default.temporaryDirectory.appending(path: "credential-\(UUID().uuidString)")
    var path: String { directory.appending(path: "token").path }

    init() throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }

    func write(_ data: Data, mode: Int = 0o600) throws {
        try data.write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    func problem(_ file: CredentialFile, meanwhile: @escaping @Sendable () -> Void = {}) async throws -> String {
        let error = try await #require(throws: OAuthError.self) { try await file.read(meanwhile: meanwhile) }
        #expect(error.code == .credentialsUnavailable && error.remedy == .retry && !error.mayBeUnderWay)
        return "\(error)"
    }

    // As Kubernetes does it: a link to a directory that is replaced.
    @Test func `a file that is rotated under a loader is read at each load`() async throws {
        let transport = ScriptedTransport { .token() }
        let client = try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://sts.example/token")), transport: transport)
        let file = Credential.file(path: path)
        let loader = GrantLoader(client, isRepeatable: true) { _ in .jwtBearer(try await file.read()) }
        let manager = FileManager.default
        for round in 1...3 {
            let target = directory.appending(path: "data-\(round)")
            try Data("token-\(round)\n".utf8).write(to: target)
            try manager.setAttributes([.posixPermissions: 0o644], ofItemAtPath: target.path)
            let link = directory.appending(path: "link").path
            try manager.createSymbolicLink(atPath: link, withDestinationPath: target.path)
            #expect(unsafe rename(link, path) == 0)
            _ = try await loader.loadToken(replacing: nil)
        }
        let sent = transport.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(sent.map { $0.contains("assertion=token-1&") } == [true, false, false])
        #expect(sent.map { $0.contains("assertion=token-3&") } == [false, false, true])
    }

    @Test(arguments: ["x", "x\n", " \t\r\nx\n\n"])
    func `whitespace around the text isn't part of the credential`(text: String) async throws {
        try write(Data(text.utf8))
        #expect(try await Credential.file(path: path).read() == "x")
    }

    @Test func `a file that is no credential is an error that says why`() async throws {
        let file = CredentialFile(path: path)
        #expect(try await problem(file).contains("cannot be opened"))
        for (data, reason) in [
            (Data(), "is empty"), (Data("\n".utf8), "is empty"), (Data([0xFF]), "not UTF-8"),
            (Data(repeating: 0x61, count: CredentialFile.maximumSize + 1), "provides more than 64 KiB"),
        ] {
            try write(data)
            #expect(try await problem(file).contains(reason))
        }
        try write(Data(repeating: 0x61, count: CredentialFile.maximumSize))
        #expect(try await Credential.file(path: path).read().utf8.count == CredentialFile.maximumSize)
        for mode in [0o620, 0o602, 0o666] {
            try write(Data("hush".utf8), mode: mode)
            let problem = try await problem(file)
            #expect(problem.contains("written by other users") && !problem.contains("hush"))
        }
        #expect(try await problem(CredentialFile(path: directory.path)).contains("not a regular file"))
        #expect(unsafe mkfifo(directory.appending(path: "pipe").path, 0o600) == 0)
        #expect(try await problem(CredentialFile(path: directory.appending(path: "pipe").path)).contains("not a regular file"))
    }

    // The error distinguishes a half-written file, which can be read at the next attempt, from an empty one.
    @Test func `a file that is written while it is read is not used`() async throws {
        let path = path
        for change in ["other1", "much longer", ""] {
            try write(Data("first!".utf8))
            let isFirst = Lock(true)
            let problem = try await problem(CredentialFile(path: path)) {
                guard
                    isFirst.withLock({ isFirst in
                        defer { isFirst = false }; return isFirst
                    })
                else { return }
                // Write in place, like a program that doesn't rename.
                let handle = FileHandle(forWritingAtPath: path)
                try? handle?.truncate(atOffset: 0)
                try? handle?.write(contentsOf: Data(change.utf8))
                try? handle?.close()
            }
            #expect(problem.contains("changed while it was read"), "\(change)")
        }
    }

    // File systems record modification times in steps: of several milliseconds up to Linux 6.12.
    @Test func `a file that is written while it is read is not used even if its size and time stay`() async throws {
        let path = path
        try write(Data(repeating: UInt8(ascii: "a"), count: 5_000))
        let problem = try await problem(CredentialFile(path: path)) {
            var status = stat()
            guard unsafe stat(path, &status) == 0, let handle = FileHandle(forWritingAtPath: path) else { return }
            try? handle.write(contentsOf: Data(repeating: UInt8(ascii: "b"), count: 5_000))
            #if canImport(Darwin)
            let times = [status.st_atimespec, status.st_mtimespec]
            #else
            let times = [status.st_atim, status.st_mtim]
            #endif
            _ = unsafe futimens(handle.fileDescriptor, times)
            try? handle.close()
        }
        #expect(problem.contains("changed while it was read"))
    }

    @Test func `a path with a NUL character opens no file, not even the one named before the NUL`() async throws {
        try write(Data("hush".utf8))
        #expect(try await problem(CredentialFile(path: path + "\0.sealed")).contains("cannot be opened"))
    }

    /// The credentials that were spent, and the contents of the file before.
    private final class Ledger: Sendable {
        let newest = Lock(0)
        let spent = Lock<[(before: Int, text: String)]>([])
    }

    // Longer than one part of a read, so that a mixture of two would be possible.
    @Test func `loads during rotations present only whole files, and never one older than an earlier load did`() async throws {
        let (path, directory, rounds) = (path, directory, 200)
        @Sendable func text(_ round: Int) -> String { String(repeating: "\(round).", count: 6_000) }
        try write(Data(text(0).utf8))
        let ledger = Ledger()
        let transport = ScriptedTransport { .token() }
        let client = try OAuthClient(
            id: "me", tokenURL: #require(URL(string: "https://sts.example/token")), transport: transport)
        let file = Credential.file(path: path)
        let loader = GrantLoader(client, isRepeatable: true) { _ in
            let before = ledger.newest.withLock { $0 }
            let credential = try await file.read()
            ledger.spent.withLock { $0.append((before, credential)) }
            return .jwtBearer(credential)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for round in 1...rounds {
                    let next = directory.appending(path: "next").path
                    _ = FileManager.default.createFile(
                        atPath: next, contents: Data(text(round).utf8), attributes: [.posixPermissions: 0o600])
                    try #require(unsafe rename(next, path) == 0)
                    ledger.newest.withLock { $0 = round }
                }
            }
            for _ in 1...3 {
                group.addTask {
                    repeat {
                        try Task.checkCancellation()
                        _ = try await loader.loadToken(replacing: nil)
                    } while ledger.newest.withLock { $0 } < rounds
                }
            }
            try await group.waitForAll()
        }
        // The spent credentials, to be compared with the file's contents.
        let spent = ledger.spent.withLock { $0 }
        #expect(!spent.isEmpty && transport.requests.count == spent.count)
        for (before, credential) in spent {
            let round = try #require(Int(credential.prefix { $0 != "." }))
            #expect(credential == text(round) && round >= before)
        }
    }
}
