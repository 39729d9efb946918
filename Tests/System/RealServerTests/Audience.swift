import AccessTokens
import DataLoading
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A thousand screens, each with a loader of its own, that request a resource that requires a valid token.
struct Audience: Sendable {
    typealias Answer = Result<Response, any Error>

    /// How many ask at once.
    static let size = 1000

    let service: TokenService
    private let events: AsyncStream<TokenEvent>
    private let factory: DataLoaderFactory
    private let request: Request

    init(service: TokenService, asking request: Request) throws {
        self.service = service
        self.request = request
        events = service.events()
        let session = URLSession(configuration: .ephemeral)
        factory = DataLoaderFactory(session: session, tokens: try OriginTokens(service, for: [request.url]))
    }

    /// Lets all callers ask at once; returns their answers.
    func ask() async -> [Answer] {
        await withTaskGroup(of: Answer.self) { group in
            for _ in 0..<Self.size {
                group.addTask {
                    do { return .success(try await factory.makeLoader().perform(request)) } catch { return .failure(error) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Starts all callers' requests without awaiting them; they end with the loader.
    func begin(with loader: DataLoader) -> [StatefulRequest] { (0..<Self.size).map { _ in loader.start(request) } }

    func makeLoader() -> DataLoader { factory.makeLoader() }

    /// Ends the service's session and returns what happened until then; call it once, last.
    func finish() async throws -> (flights: Flights, invalidations: Int) {
        _ = await service.reset()
        var flights = Flights()
        var invalidations = 0
        for await event in events {
            if event.name == .reset { break }
            if event.name == .invalidated { invalidations += 1 }
            flights.count(event)
        }
        return (flights, invalidations)
    }
}

extension [Audience.Answer] {
    /// The failed answers.
    var failures: [any Error] { compactMap { if case .failure(let error) = $0 { error } else { nil } } }
}
