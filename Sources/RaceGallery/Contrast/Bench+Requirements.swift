import AccessTokens
import AccessTokensTesting
import Interleavings
import TokenServiceConcurrency

/// What a trial requires of a service.
extension Bench {
    func requireOneLoad() throws {
        let loads = network.server.loadsStarted
        try simulation.require(loads == 1, "\(loads) loads, where one is enough")
    }

    /// Exactly one for each call, in the order of calls that did not overlap.
    func requireAnswers() throws {
        for caller in state.withLock({ $0.callers }) {
            let count = caller.answers.count
            try simulation.require(count > 0, "\(caller.name) is never answered")
            try simulation.require(count == 1, "\(caller.name) is answered \(count) times")
            try simulation.require(!caller.hasOvertaken, "\(caller.name) is answered before somebody who called earlier")
        }
    }

    func requireAcceptedTokens() throws {
        for caller in state.withLock({ $0.callers }) {
            let token = try? caller.answers.first?.get()
            let isAccepted = token.map(network.server.accepts) ?? false
            try simulation.require(isAccepted, "\(caller.name) holds no token that the server accepts")
        }
    }

    /// The last caller's token was issued after the sign-out began.
    func requireNewToken() throws {
        let (caller, issued) = state.withLock { ($0.callers.last, $0.issuedBeforeSignOut) }
        // The server numbers its tokens.
        let old = (0..<issued).map { "access-\($0 + 1)" }
        let isOld = (try? caller?.answers.first?.get()).map { old.contains($0.value) } ?? false
        try simulation.require(!isOld, "the later caller gets a token from before the sign-out")
    }
}
