import AccessTokens
import AccessTokensDispatch
import Foundation

/// A thousand async and a thousand callback callers of one service, and the service's events about them.
struct Crowd: Sendable {
    typealias Answer = Result<AccessToken, any Error>

    /// How many callers of each kind ask at once.
    static let size = 1000

    let service: TokenService
    let shim: AccessTokenService
    private let events: AsyncStream<TokenEvent>

    init(
        loader: some TokenLoader, store: (any TokenStore)? = nil, clock: any Clock<Duration>,
        wallClock: @escaping @Sendable () -> Date = { Date() }
    ) {
        service = TokenService(store: store, environment: .init(clock: clock, wallClock: wallClock), loader: loader)
        shim = AccessTokenService(service: service)
        events = service.events()
    }

    /// Lets each caller ask for a token in two ways; returns all answers, those of callbacks last.
    ///
    /// - Parameter prepare: Called before each caller asks, with the caller's number.
    func ask(after prepare: @escaping @Sendable (Int) async throws -> Void = { _ in }) async throws -> [Answer] {
        let (callbacks, called) = AsyncStream.makeStream(of: Answer.self)
        var answers = try await withThrowingTaskGroup(of: Answer.self) { [service, shim] group in
            for caller in 0..<Self.size {
                group.addTask {
                    try await prepare(caller)
                    shim.retrieveToken { called.yield($0) }
                    do { return .success(try await service.retrieveToken()) } catch { return .failure(error) }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        for await answer in callbacks {
            answers.append(answer)
            if answers.count == 2 * Self.size { break }
        }
        return answers
    }

    /// Ends the service's session and returns everything that happened until then; call it once, last.
    ///
    /// The reset marks the end of the events to read. No load may be running: a load that the reset cuts off sends no event.
    func finish() async throws -> Flights {
        _ = await service.reset()
        var flights = Flights()
        for await event in events {
            if event.name == .reset { break }
            flights.count(event)
        }
        return flights
    }
}

/// The loads of a service, counted from its events.
struct Flights: Equatable {
    /// Loads that callers waited for.
    var loads = 0
    /// Loads ahead of expiry.
    var refreshes = 0
    var successes = 0
    var failures = 0

    var started: Int { loads + refreshes }

    mutating func count(_ event: TokenEvent) {
        switch event.name {
        case .loadStarted: loads += 1
        case .refreshStarted: refreshes += 1
        case .loadSucceeded: successes += 1
        case .loadFailed, .refreshFailed: failures += 1
        default: break
        }
    }
}

extension [Crowd.Answer] {
    /// The different tokens among the answers.
    var tokens: Set<AccessToken> { Set(compactMap { try? $0.get() }) }

    /// The errors among the answers.
    var errors: [any Error] {
        compactMap { if case .failure(let error) = $0 { error } else { nil } }
    }

    /// The service's own errors among them.
    var serviceErrors: [TokenServiceError] { errors.compactMap { $0 as? TokenServiceError } }
}
