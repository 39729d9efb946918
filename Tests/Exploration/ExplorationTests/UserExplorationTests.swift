import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Foundation
import Interleavings
import InterleavingsTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

/// Guarantee 43: requests that are refused while their users change, in orders chosen at random.
@Suite(.exploring()) struct `Users in turn` {
    private static func token(of session: Int, _ number: Int) -> AccessToken {
        AccessToken("\(session) \(number)", lifetime: .seconds(3_600), refreshToken: "\(session)")
    }

    private static func session(of token: AccessToken) -> Substring? { token.value.split(separator: " ").first }

    @Test(arguments: [TimeModel.whenIdle, .anytime])
    func `43: no refused request is sent again with a token of another session`(time: TimeModel) async throws {
        try await explore(.mixed(schedules: .everyday(40, thorough: 2_000)), time: time) { simulation in
            let loads = Lock(0)
            let tokens = TokenService(environment: .driven(by: simulation.taskExecutor, clock: simulation.clock)) { previous in
                try? await simulation.clock.sleep(for: .seconds(1))
                guard let session = previous?.refreshToken.flatMap({ Int($0) }) else { throw LoadFailure(remedy: .signIn) }
                let number = loads.withLock { loads in
                    loads += 1
                    return loads
                }
                return Self.token(of: session, number)
            }
            let queue = simulation.serialQueue("queue")
            let shim = AccessTokenService(service: tokens) { queue.async($0) }
            await tokens.replace(with: Self.token(of: 0, 0))
            for number in 1...3 {
                let isCallback = simulation.choose("\(number) has a handler", 2) == 1
                simulation.spawn("request \(number)") {
                    guard var token = try? await tokens.retrieveToken() else { return }
                    let session = Self.session(of: token)
                    for _ in 1...2 {
                        // The request is under way.
                        try? await simulation.clock.sleep(for: .seconds(simulation.choose("pause", 3)))
                        let next =
                            isCallback
                            ? await Self.ask(shim, insteadOf: token) : try? await tokens.retrieveToken(insteadOf: token)
                        guard let next else { return }
                        try simulation.require(Self.session(of: next) == session, "\(token.value) was followed by \(next.value)")
                        // 49: it may, once five loads have followed refusals.
                        let isLimited = loads.withLock(\.self) >= RefreshPolicy.invalidationLimit
                        try simulation.require(next.value != token.value || isLimited, "a refused token came again")
                        token = next
                    }
                }
            }
            simulation.spawn("users") {
                for session in 1...2 {
                    try? await simulation.clock.sleep(for: .seconds(simulation.choose("stay", 3)))
                    _ = await tokens.reset()
                    await tokens.replace(with: Self.token(of: session, 0))
                }
            }
            try await simulation.settle()
        }
    }

    private static func ask(_ shim: AccessTokenService, insteadOf refused: AccessToken) async -> AccessToken? {
        let answer = SingleResult<AccessToken>()
        shim.retrieveToken(insteadOf: refused) { answer.complete(with: $0) }
        return try? await answer.value()
    }
}
