import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Dispatch
import Foundation
import TestBudgets
import Testing

// “When the program ends”, unchanged; the parts that can run are run.

private struct Program {
    let tokens: TokenService
    let services: TokenServices<String>
    let server: Server
    let log = GuideLog()

    struct Server: Sendable {
        func stop() async {}
    }

    static func upload(_ token: AccessToken) async throws {}

    static func runInVain(_ store: some TokenStore, _ loader: some TokenLoader) async throws -> TokenService {
        let tokens = TokenService(store: store, loader: loader)
        try await upload(try await tokens.retrieveToken())
        return tokens
    }

    static func makeTool(_ store: some TokenStore, _ loader: some TokenLoader) -> TokenService {
        let tokens = TokenService(
            policy: RefreshPolicy(maximumRefreshWindow: .zero),
            store: store, loader: loader)
        return tokens
    }

    func finish() async {
        let result = await tokens.drain(within: .seconds(8))
        if !result.hasEnded {
            log.add(
                "a load was still under way; the next run may need a sign-in")
        }
        for change in result.unsaved {
            let problem = change.error?.description ?? "the store is at it"
            log.add("not saved: \(problem)")
        }
    }

    func finishAll() async {
        await services.drain(within: .seconds(8))
    }

    func handleSignal() -> any DispatchSourceSignal {
        signal(SIGTERM, SIG_IGN)
        let source = DispatchSource.makeSignalSource(
            signal: SIGTERM, queue: .main)
        source.setEventHandler {
            Task {
                await server.stop()  // the last requests have been answered
                await tokens.drain(within: .seconds(8))
                exit(0)
            }
        }
        source.resume()
        return source
    }

    func didEnterBackground() async {
        await tokens.drain(within: .seconds(5))
    }

    func willEnterForeground() async {
        await tokens.resume()
    }
}

@Suite(.inRealTime) struct `The guide to a program's end` {
    private let server = SimulatedAuthorizationServer(clock: ManualClock(), rotatesRefreshTokens: true)

    @Test func `drains the service, and loads again if the program goes on`() async throws {
        let program = Program(
            tokens: TokenService(loader: server.loader), services: TokenServices { [server] _ in server.loader }, server: .init())
        await program.tokens.replace(with: server.signIn())
        await program.didEnterBackground()
        await program.tokens.invalidate(try await program.tokens.retrieveToken())
        let error = await #expect(throws: TokenServiceError.self) { try await program.tokens.retrieveToken() }
        #expect(error?.code == .drained)
        await program.willEnterForeground()
        #expect(try await program.tokens.retrieveToken().value == "access-2")
        await program.finish()
        #expect(program.log.lines.isEmpty)
        await program.finishAll()
        let ofKey = await #expect(throws: TokenServiceError.self) { try await program.services["a"].retrieveToken() }
        #expect(ofKey?.code == .drained)
    }

    @Test func `makes a tool without refreshes ahead, which gets its token like any other`() async throws {
        let store = ScriptedStore(StoredToken(server.signIn(), received: Date()))
        #expect(try await Program.makeTool(store, server.loader).retrieveToken().value == "access-1")
        #expect(try await Program.runInVain(store, server.loader).cachedToken?.value == "access-1")
    }
}
