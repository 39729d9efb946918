import AccessTokens
import Foundation
import Synchronization

/// An authorization server that ends the session when a refresh token is presented twice, and notes when.
final class TimingServer: Sendable {
    struct Exchange {
        let token: String
        let service: Int
        let time: ContinuousClock.Instant
        /// Whether the token was good.
        let isGood: Bool
    }

    struct Refused: TokenLoadFailure {
        var remedy: TokenServiceError.Remedy { .signIn }
    }

    private struct State {
        var ledger: [Exchange] = []
        var issued = 0
        var isEnded = true
    }

    private let state = Mutex(State())

    var ledger: [Exchange] { state.withLock { $0.ledger } }
    var rotations: Int { ledger.count { $0.isGood } }
    var reuses: Int { ledger.count { !$0.isGood } }

    /// Waits for so many more rotations.
    func rotations(_ count: Int) async throws {
        let goal = rotations + count
        while rotations < goal { try await Task.sleep(for: .milliseconds(.random(in: 1...10))) }
    }

    /// Begins a session; `nil` if there is one.
    func signIn() -> AccessToken? {
        state.withLock { state in
            guard state.isEnded else { return nil }
            state.isEnded = false
            state.issued += 1
            return Self.token(state.issued)
        }
    }

    /// The client's side in one service, with answers that take 3 ms.
    func loader(of service: Int) -> some TokenLoader { Loader(server: self, service: service) }

    private struct Loader: TokenLoader {
        let server: TimingServer
        let service: Int

        @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
            let token = try server.exchange(previous?.refreshToken ?? "", by: service)
            try await Task.sleep(for: .milliseconds(3))
            return token
        }
    }

    private func exchange(_ token: String, by service: Int) throws -> AccessToken {
        try state.withLock { state in
            let isGood = !state.isEnded && token == "\(state.issued)"
            state.ledger.append(Exchange(token: token, service: service, time: .now, isGood: isGood))
            state.isEnded = !isGood
            guard isGood else { throw Refused() }
            state.issued += 1
            return Self.token(state.issued)
        }
    }

    private static func token(_ number: Int) -> AccessToken {
        AccessToken("access-\(number)", lifetime: .milliseconds(40), refreshToken: "\(number)")
    }
}
