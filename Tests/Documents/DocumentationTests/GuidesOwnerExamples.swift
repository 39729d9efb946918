import AccessTokens
import AccessTokensOAuth
import AccessTokensTesting
import Foundation
import Synchronization
import TestBudgets
import Testing

// The Swift blocks of `AnotherOwner` and `DeadlinesAndRetries`, unchanged; the deadline is run.

private func readOnce(file: Credential) async throws -> String {
    let bearer = try await file.read()
    return bearer
}

private func tokensFromFile() -> TokenService {
    let file = Credential.file(path: "/run/secrets/api/token")
    let tokens = TokenService(isRepeatable: true) { _ in
        AccessToken(
            try await file.read(), lifetime: .seconds(600),
            refreshIn: .seconds(60))
    }
    return tokens
}

private func tokensFromCommand() -> TokenService {
    let command = Credential.command(
        "/usr/local/bin/login-tool", ["print-access-token"])
    let tokens = TokenService(isRepeatable: true) { _ in
        AccessToken(
            try await command.read(), lifetime: .seconds(1800),
            refreshIn: .seconds(300))
    }
    return tokens
}

private struct Answer {
    var token: String
    var isRefused = false
}

private func send(_ attempt: () async throws -> Answer) async throws -> Answer {
    for _ in 1...3 {
        do {
            return try await attempt()
        } catch let error as TokenServiceError
            where error.remedy == .retry
        {
            guard let wait = error.retryAt?.timeIntervalSinceNow, wait < 5
            else { throw error }
            try await Task.sleep(for: .seconds(max(wait, 0)))
        }
    }
    return try await attempt()
}

private struct Caller {
    let tokens: TokenService
    let refused: String

    func send(
        _ token: AccessToken, within limit: Duration
    ) async throws -> Answer {
        Answer(token: token.value, isRefused: token.value == refused)
    }

    func answer(
        by deadline: ContinuousClock.Instant
    ) async throws -> Answer {
        func rest() -> Duration { deadline - .now }
        let token = try await tokens.retrieveToken(within: rest())
        let first = try await send(token, within: rest())
        guard first.isRefused else { return first }
        let next = try await tokens.retrieveToken(
            insteadOf: token, within: rest())
        return try await send(next, within: rest())
    }
}

@Suite(.inRealTime) struct `The guides to another program's token, and to deadlines` {
    @Test func `a file is read again when it is time, and callers get the known token meanwhile`() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "owned-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        func write(_ text: String) throws {
            try Data(text.utf8).write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        }
        try write("one")
        let file = Credential.file(path: path), clock = ManualClock()
        let tokens = TokenService(environment: .init(clock: clock), isRepeatable: true) { _ in
            AccessToken(try await file.read(), lifetime: .seconds(600), refreshIn: .seconds(60))
        }
        let events = tokens.events()
        #expect(try await tokens.retrieveToken().value == "one")
        try write("two")
        #expect(try await tokens.retrieveToken().value == "one")
        clock.advance(by: .seconds(61))
        #expect(try await tokens.retrieveToken().value == "one")
        var successes = events.filter { $0.name == .loadSucceeded }.makeAsyncIterator()
        for _ in 1...2 { _ = await successes.next() }
        #expect(try await tokens.retrieveToken().value == "two")
    }

    @Test func `a refused request is sent once more within its deadline, and without time no load starts`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        let caller = Caller(tokens: TokenService(loader: server.loader), refused: "access-1")
        #expect(try await caller.answer(by: .now + .seconds(600)).token == "access-2")
        let late = Caller(tokens: TokenService(loader: server.loader), refused: "")
        let error = await #expect(throws: TokenServiceError.self) { try await late.answer(by: .now) }
        #expect(error?.code == .deadlineExceeded)
        #expect(server.loadsStarted == 2)
    }

    @Test func `a failed load is tried again when its error says so`() async throws {
        let server = SimulatedAuthorizationServer(clock: ManualClock())
        server.failNext()
        let tokens = TokenService(loader: server.loader)
        #expect(try await send { Answer(token: try await tokens.retrieveToken().value) }.token == "access-1")
    }
}
