import AccessTokens
import AccessTokensOAuth
import Foundation
import LoopbackServers
import Synchronization
import Testing

@testable import AsATool

/// An authorization server that ends the session when a refresh token is presented twice, and an API that tells whose a token is.
private final class SignInServer: Sendable {
    struct State {
        var newest = 0
        var (exchanges, reuses, revoked, isDown) = (0, 0, [String](), false)
        /// How often a device is told to wait.
        var waits = 1
        var lifetime = 3600
        /// The number of a token that the API refuses.
        var refused = 0
    }

    let settings: Settings
    let state = Mutex(State())
    /// Held up by a test: the answer to a refresh.
    let answers = DispatchSemaphore(value: 0)
    let holdsRefreshes = Mutex(false)
    let arrivals = AsyncStream.makeStream(of: Void.self)

    init(_ settings: Settings) { self.settings = settings }

    func answer(_ request: String) -> LoopbackServer.Reply {
        let path = request.split(separator: " ").dropFirst().first.map(String.init) ?? ""
        let form = request.components(separatedBy: "\r\n\r\n").last ?? ""
        func field(_ name: String) -> String? {
            form.split(separator: "&").first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
        }
        if field("grant_type") == "refresh_token", holdsRefreshes.withLock(\.self) {
            arrivals.continuation.yield()
            answers.wait()
        }
        return state.withLock { state in
            guard !state.isDown || path != settings.tokenURL.path else { return reply(503, "{}") }
            switch (path, field("grant_type")) {
            case (settings.deviceURL.path, _):
                return reply(
                    200,
                    #"{"device_code":"d","user_code":"AB-CD","verification_uri":"https://x.example","expires_in":60,"interval":1}"#
                )
            case (settings.revocationURL.path, _):
                state.revoked.append(field("token") ?? "")
                state.newest = -1
                return reply(200, "")
            case (settings.tokenURL.path, "refresh_token"):
                guard field("refresh_token") == "r\(state.newest)" else {
                    state.reuses += 1
                    return reply(400, #"{"error":"invalid_grant"}"#)
                }
                state.newest += 1
            case (settings.tokenURL.path, "authorization_code"):
                guard field("code") == "c", field("code_verifier") != nil else {
                    return reply(400, #"{"error":"invalid_grant"}"#)
                }
                state.newest = 1
            case (settings.tokenURL.path, _):
                state.waits -= 1
                guard state.waits < 0 else { return reply(400, #"{"error":"authorization_pending"}"#) }
                state.newest = 1
            default:
                let isGood = request.contains("Bearer a\(state.newest)\r\n") && state.newest != state.refused
                return isGood ? reply(200, "anna") : reply(401, "")
            }
            state.exchanges += 1
            return reply(
                200,
                #"{"access_token":"a\#(state.newest)","token_type":"Bearer","expires_in":\#(state.lifetime),"refresh_token":"r\#(state.newest)"}"#
            )
        }
    }

    private func reply(_ status: Int, _ body: String) -> LoopbackServer.Reply {
        .bytes("HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
}

@Suite(.timeLimit(.minutes(5)))
struct `A command-line tool` {
    private let signIns: SignInServer
    private let server: LoopbackServer
    private let home = FileManager.default.temporaryDirectory.appending(path: "tool \(UUID())").path

    init() throws {
        let signIns = SignInServer(try Settings(["XDG_STATE_HOME": home]))
        self.signIns = signIns
        server = try LoopbackServer { signIns.answer($0) }
    }

    /// A run of the tool, by its process and what it writes for its user.
    private struct Run {
        let process = Process()
        let output = Pipe(), error = Pipe()

        /// Waits on a thread of its own.
        func result() async -> (status: Int32, output: String, error: String) {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { [process, output, error] in
                    let texts = [output, error].map {
                        String(decoding: $0.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
                    }
                    process.waitUntilExit()
                    continuation.resume(returning: (process.terminationStatus, texts[0], texts[1]))
                }
            }
        }
    }

    private func start(_ arguments: String...) throws -> Run {
        let run = Run()
        run.process.executableURL = try program("AsATool")
        run.process.arguments = arguments
        run.process.environment = ProcessInfo.processInfo.environment.merging([
            "HOME": home, "XDG_STATE_HOME": home, Settings.serverVariable: server.url.deletingLastPathComponent().absoluteString,
        ]) { $1 }
        run.process.standardOutput = run.output
        run.process.standardError = run.error
        try run.process.run()
        return run
    }

    private func signIn() async throws {
        let run = try await start("login").result()
        #expect(run.status == 0 && run.error.contains("enter AB-CD") && run.error.hasSuffix("You are signed in.\n"), "\(run)")
    }

    @Test func `a user signs in with a device, and out again, which ends the session at the server`() async throws {
        defer { try? FileManager.default.removeItem(atPath: home) }
        try await signIn()
        #expect(try await start("whoami").result().output == "anna\n")
        #expect(try await start("logout").result().status == 0)
        #expect(signIns.state.withLock(\.revoked) == ["r1"])
        let run = try await start("whoami").result()
        #expect(
            run.status == 1 && run.error.hasPrefix("You are not signed in any more. Run “\(Settings.name) login”.\n"), "\(run)")
        #expect(try await start("nothing").result().status == 64)
    }

    @Test func `a second sign-in works although the server revokes all of a user's tokens at once`()
        async throws
    {
        defer { try? FileManager.default.removeItem(atPath: home) }
        try await signIn()
        try await signIn()
        #expect(signIns.state.withLock(\.revoked) == ["r1"])
        #expect(try await start("whoami").result().output == "anna\n")
    }

    @Test func `a user signs in with a browser, whatever else is sent to the listener`() async throws {
        defer { try? FileManager.default.removeItem(atPath: home) }
        let run = try start("login", "--browser")
        var text = ""
        while !text.contains("\n") { text += String(decoding: run.error.fileHandleForReading.availableData, as: UTF8.self) }
        let url = try #require(text.firstMatch(of: /Opening (\S+)/).flatMap { URLComponents(string: String($0.1)) })
        func value(_ name: String) throws -> String { try #require(url.queryItems?.first { $0.name == name }?.value) }
        func visit(_ query: String) async throws -> String {
            let client = Process(), pipe = Pipe()
            client.executableURL = URL(filePath: "/usr/bin/env")
            client.arguments = ["curl", "-s", try value("redirect_uri") + "?" + query]
            client.standardOutput = pipe
            try client.run()
            return await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    continuation.resume(
                        returning: String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self))
                }
            }
        }
        #expect(try await visit("code=stolen&state=other") == "This isn't a sign-in.")
        #expect(try await visit("") == "This isn't a sign-in.")
        #expect(try await visit("code=c&state=\(value("state"))") == "You can close this window.")
        #expect(await run.result().status == 0)
        #expect(try await start("whoami").result().output == "anna\n")
    }

    @Test func `many processes at once present each refresh token once`() async throws {
        defer { try? FileManager.default.removeItem(atPath: home) }
        signIns.state.withLock { $0.lifetime = 1 }
        try await signIn()
        try await withThrowingTaskGroup { group in
            for _ in 1...12 {
                group.addTask {
                    let run = try await start("whoami").result()
                    #expect(run.status == 0 && run.output == "anna\n", "\(run)")
                }
            }
            try await group.waitForAll()
        }
        #expect(signIns.state.withLock(\.reuses) == 0)
    }

    @Test func `Ctrl-C ends the tool only when the answer to its refresh is saved, and a second one at once`() async throws {
        defer { try? FileManager.default.removeItem(atPath: home) }
        try await signIn()
        signIns.state.withLock { $0.refused = 1 }
        signIns.holdsRefreshes.withLock { $0 = true }
        let run = try start("whoami")
        for await _ in signIns.arrivals.stream { break }
        run.process.interrupt()
        var text = ""
        while !text.contains("Interrupted.") {
            text += String(decoding: run.error.fileHandleForReading.availableData, as: UTF8.self)
        }
        #expect(run.process.isRunning)
        signIns.holdsRefreshes.withLock { $0 = false }
        signIns.answers.signal()
        #expect(await run.result().status == 130)
        #expect(try await start("whoami").result().output == "anna\n")
        #expect(signIns.state.withLock { $0.reuses == 0 && $0.newest == 2 })

        let waiting = try start("login", "--browser")
        _ = waiting.error.fileHandleForReading.availableData
        waiting.process.interrupt()
        #expect(await waiting.result().status == 130)
    }

    @Test func `a server that is down doesn't ask for a new sign-in`() async throws {
        defer { try? FileManager.default.removeItem(atPath: home) }
        try await signIn()
        signIns.state.withLock { ($0.refused, $0.isDown) = (1, true) }
        let run = try await start("whoami").result()
        #expect(run.status == 1 && run.error.hasPrefix("The service can't be reached at the moment."), "\(run)")
    }

    @Test(arguments: [.retry, .signIn, .signInOrRegistration, .clientRegistration, .programChange] as [TokenServiceError.Remedy])
    func `each remedy has a sentence for people who aren't developers`(remedy: TokenServiceError.Remedy) {
        struct Failure: TokenLoadFailure { let remedy: TokenServiceError.Remedy }
        let text = advice(on: Failure(remedy: remedy))
        #expect(text.contains(".") && !text.contains("replace(with:)") && !text.contains("token"))
    }
}
