import AccessTokens
import AccessTokensKeys
import AccessTokensTesting
import Interleavings
import Synchronization
import Testing

// Every Swift block of `LoggingAndMetrics`, as it stands there, run.

private struct EachCaller {
    let tokens: TokenService
    let log: @Sendable (String) -> Void

    func tokenForRequest() async throws -> AccessToken {
        do {
            return try await tokens.retrieveToken()
        } catch {
            log("no token: \(error)")  // once for each caller who waited
            throw error
        }
    }
}

func watch(
    _ tokens: TokenService,
    _ report: @escaping @Sendable (TokenEvent) -> Void
) -> Task<Void, Never> {
    let events = tokens.events()  // here: from now on nothing is missed
    return Task {
        for await event in events { report(event) }
    }
}

extension TokenEvent {
    var level: Logger.Level {
        // You: only an operator can mend the client's registration.
        if error?.remedy == .clientRegistration { return .critical }
        // The user, who signs in again: no fault of the program.
        if error?.remedy == .signIn { return .notice }
        return switch name {
        case .loadFailed, .storeFailed: .error  // callers have no token, now or later
        case .refreshFailed, .invalidated: .warning  // callers are served, for now
        case .reset, .replaced, .restored: .info  // a session begins or ends
        default: .debug  // the daily work
        }
    }

    var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = ["generation": "\(generation)"]
        if let load {
            metadata["load"] = "\(load)"
            metadata["callers"] = "\(callers)"
        }
        if let error {
            metadata["error"] = "\(error.code)"
            metadata["remedy"] = "\(error.remedy)"
            metadata["description"] = "\(error)"
        }
        return metadata
    }
}

func log(_ tokens: TokenService, to logger: Logger) -> Task<Void, Never> {
    watch(tokens) { event in
        logger.log(level: event.level, "\(event.name)", metadata: event.metadata)
    }
}

struct TenantScope: Hashable {
    var tenant: Int
    var scope: String
}

func log(_ services: TokenServices<TenantScope>, to logger: Logger) -> Task<Void, Never> {
    let events = services.events()
    return Task {
        for await event in events {
            var metadata = event.event.metadata
            metadata["tenant"] = "\(event.key.tenant)"
            logger.log(level: event.event.level, "\(event.event.name)", metadata: metadata)
        }
    }
}

@Suite struct `The guide to logging` {
    @Test func `shows a line for each caller, where one load failed`() async throws {
        try await explore(.random(schedules: 1, seed: 1)) { simulation in
            let clock = simulation.clock
            let tokens = TokenService(environment: .driven(by: simulation.taskExecutor, clock: clock, seed: 1)) { _ in
                try await clock.sleep(for: .seconds(1))
                throw ScriptedFailure.transient
            }
            let events = tokens.events()
            let lines = Lines()
            let each = EachCaller(tokens: tokens) { lines.add($0) }
            for number in 1...10 { simulation.spawn("caller \(number)") { try await each.tokenForRequest() }.allowingError() }
            try await simulation.settle()
            try simulation.require(lines.all.count == 10, "a line for each caller")
            let event = await events.first { $0.name == .loadFailed }
            try simulation.require(
                event?.description
                    == "loadFailed generation=0 load=1 callers=10 error=loadFailed cause=temporarily_unavailable remedy=retry",
                "one event for all")
        }
    }

    @Test func `reports what happens, until the service is released`() async throws {
        let lines = Lines()
        func begin() async throws -> Task<Void, Never> {
            let tokens = TokenService { _ in AccessToken("a") }
            let watching = watch(tokens) { lines.add("\($0.name)") }
            _ = try await tokens.retrieveToken()
            return watching
        }
        try await begin().value
        #expect(lines.all == ["loadStarted", "loadSucceeded"])
    }

    @Test func `logs what happens to all keys, with the part of a key that it chooses`() async throws {
        let lines = Lines()
        func begin() async throws -> Task<Void, Never> {
            let services = TokenServices<TenantScope> { key, _ in AccessToken(key.scope) }
            let logging = log(services, to: Logger(label: "test") { lines.add($0) })
            for tenant in [7, 8] { _ = try await services[TenantScope(tenant: tenant, scope: "mail")].retrieveToken() }
            return logging
        }
        try await begin().value
        #expect(lines.all.map { String($0.suffix(8)) } == ["tenant=7", "tenant=7", "tenant=8", "tenant=8"])
        #expect(lines.all.first == "debug loadStarted callers=1 generation=0 load=1 tenant=7")
    }

    @Test(arguments: [
        (ScriptedFailure.transient, Logger.Level.error), (.grantRefused, .notice), (.clientRefused, .critical),
    ])
    func `grades failures by who can end them`(failure: ScriptedFailure, level: Logger.Level) async throws {
        let tokens = TokenService { _ in throw failure }
        let events = tokens.events()
        _ = try? await tokens.retrieveToken()
        let event = try #require(await events.first { $0.name == .loadFailed })
        #expect(event.level == level)
    }

    @Test func `grades events that are not failures`() async throws {
        let tokens = TokenService { _ in AccessToken("a") }
        let events = tokens.events()
        await tokens.replace(with: AccessToken("b"))
        await tokens.invalidate(AccessToken("b"))
        _ = try await tokens.retrieveToken()
        _ = await tokens.reset()
        var seen: [Logger.Level] = []
        for await event in events {
            seen.append(event.level)
            if event.name == .reset { break }
        }
        #expect(seen == [.info, .warning, .debug, .debug, .info])
    }

    @Test func `logs one line for each event, whose metadata has numbers, the error's code and no secret`() async {
        let lines = Lines()
        func begin() async -> Task<Void, Never> {
            let tokens = TokenService { _ in throw ScriptedFailure.grantRefused }
            let logging = log(tokens, to: Logger(label: "test") { lines.add($0) })
            _ = try? await tokens.retrieveToken()
            return logging
        }
        await begin().value
        #expect(lines.all.first == "debug loadStarted callers=1 generation=0 load=1")
        #expect(lines.all.count == 2)
        #expect(
            lines.all.last?.hasPrefix("notice loadFailed callers=1 description=") == true
                && lines.all.last?.hasSuffix(" error=loadFailed generation=0 load=1 remedy=signIn") == true)
    }
}

private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func add(_ line: String) { lines.withLock { $0.append(line) } }
}
