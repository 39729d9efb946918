import AccessTokens

/// What the processes of a fleet know of their one grant: the contents of a shared store's record, as a pure value.
struct GrantRecord: Sendable, Hashable {
    /// Says that its holder is about to present the record's refresh token, in an exchange that takes no longer than the limit.
    struct Mark: Sendable, Hashable {
        /// The one service that may present the token.
        var owner: String
        /// Its process, if the store can say whether that is running.
        var holder: String?
        /// How long its exchange may take, from the moment when the mark was written.
        var limit: Duration
    }

    /// The fleet's failures since its last token: one count, and the pause that follows from it.
    struct Trouble: Sendable, Hashable {
        var failures: Int
        /// The service that met the last one, and keeps its own pause.
        var owner: String
        /// The first service that the server refused this grant, of those whom it has served under the same sign-in: a service with a
        /// wrong client id is always refused.
        var refuser: String?
        /// Whether another one was refused after it: then the refusal counts for all, until the pause is over.
        var isRefused: Bool
        /// How long the fleet waits before it asks the server again.
        var pause: Duration
        /// When the last failure was written, on the writer's wall clock, in seconds since 2001.
        var time: Double
    }

    /// Names the write that made it: whose answer was lost recognises its own.
    var write: String
    /// Names the sign-in or sign-out that it comes from; marks, failures and new tokens leave it.
    var fence = ""
    /// Grows with every token, sign-in and sign-out.
    var generation: UInt64
    /// The generation of the last sign-out, also if a sign-in has followed; 0: there was none.
    var signedOut: UInt64 = 0
    /// The token; `nil`: signed out, or never signed in.
    var token: AccessToken?
    /// When the token's load began, on the wall clock, in seconds since 2001.
    var received: Double
    var mark: Mark?
    var trouble: Trouble?

    init(write: String, generation: UInt64, token: AccessToken? = nil, received: Double = 0) {
        self.write = write
        self.generation = generation
        self.token = token
        self.received = received
    }

    /// In place of a record that has never been written, or that was removed.
    static let none = GrantRecord(write: "", generation: 0)

    /// The generation to count from.
    ///
    /// A record that begins anew, since it was removed, begins later than the one before, also for a service that doesn't know that
    /// one: at the time, in seconds since 2001, which no record reaches by counting.
    ///
    /// - Parameter seen: The latest that the service has seen.
    func generation(after seen: UInt64?, at time: Double?) -> UInt64 {
        let first = write.isEmpty ? UInt64(min(max(time ?? 0, 0), 1e15)) : 0
        return max(generation, seen ?? 0, first)
    }

    /// A tombstone: signed out.
    var isTombstone: Bool { token == nil }

    /// How old its token is: no older than its life, nor younger than new, whatever the clocks say.
    func age(at time: Double?) -> Duration {
        let life = min(max(token?.lifetime ?? .zero, .zero), RefreshPolicy.longestLifetime)
        // A clock that tells no time makes every token old.
        guard let time, (time - received).isFinite else { return life }
        return .seconds(min(max(time - received, 0), life / .seconds(1)))
    }

    /// How much is left of the pause after the fleet's last failure; at most all of it, whatever the clocks say.
    func pause(at time: Double?) -> Duration {
        guard let trouble, let time, (time - trouble.time).isFinite else { return .zero }
        return .seconds(min(max(trouble.pause / .seconds(1) - max(time - trouble.time, 0), 0), trouble.pause / .seconds(1)))
    }
}
