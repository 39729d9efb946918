import AccessTokens
import AccessTokensTesting
import Interleavings

/// Considers a token valid until a minute before its end.
///
/// One day a server issues tokens that live for half a minute. Each is past its leeway when it arrives, and every caller loads
/// another. gcloud-rust#6678 is such a bug. In gotrue-swift PR#55 the leeway's sign was inverted instead, and tokens were used
/// for a minute beyond their end.
///
/// The bug sits in `isGood`, in a constant that is independent of the token.
actor OversizedLeewayService: LoadSharing {
    private static let leeway = Duration.seconds(60)

    var shared: SharedLoad

    init(_ shared: SharedLoad) { self.shared = shared }

    private var isGood: Bool {
        // The leeway should be a share of the lifetime.
        shared.token.left.map { $0 > Self.leeway } ?? false
    }

    func retrieveToken() async throws -> AccessToken {
        if isGood, let token = shared.token.valid { return token }
        return try await join().value
    }
}

extension Exhibit {
    static let oversizedLeeway = Exhibit(
        21, "Leeway sign inverted; leeway longer than the lifetime: busy loop",
        source: "gotrue-swift PR#55; gcloud-rust#6678",
        broken: { simulation in
            try await aServerWithShortTokens(simulation) { loader in
                let service = OversizedLeewayService(SharedLoad(simulation, loader: loader))
                return { try await service.retrieveToken() }
            }
        },
        mended: { simulation in
            try await aServerWithShortTokens(simulation) { loader in
                let service = simulation.service(loader: loader)
                return { try await service.retrieveToken() }
            }
        })

    /// Two callers need a token for three requests each, a second apart.
    private static func aServerWithShortTokens(
        _ simulation: Simulation, _ makeService: (any TokenLoader) -> Retrieve
    ) async throws {
        let seconds = simulation.choose("the lifetime of tokens in seconds", among: [3600, 300, 60, 30]) ?? 30
        let server = simulation.server(lifetime: .seconds(seconds))
        let retrieve = makeService(simulation.loader(of: server))
        for name in ["caller 1", "caller 2"] {
            simulation.spawn(name) {
                for request in 1...3 {
                    try await simulation.ask(retrieve, saying: "asks for request \(request)")
                    try await simulation.clock.sleep(for: .seconds(1))
                }
            }
        }
        try await simulation.settle()
        try simulation.require(
            server.loadsStarted == 1, "a token that lives for \(seconds) s serves six requests in a few seconds: one load")
    }
}
