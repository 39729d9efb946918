extension FleetWorld {
    enum ServerKind: Hashable, CaseIterable {
        /// A token that is presented again ends the session.
        case strict
        /// It is refused.
        case soft
        /// For a time, 30 s by default, the token presented last is accepted again; after that the server is strict.
        case grace
    }

    /// The authorization server: one session after another, each with a chain of refresh tokens.
    struct Server: Hashable {
        enum Answer: Hashable { case issued(Int), repeated(Int), refused, reused }

        static let grace = Duration.seconds(30)
        /// Each user's tokens have numbers from a multiple of this one.
        static let user = 16

        let kind: ServerKind
        private let grace: Duration
        /// The token that it expects, and whether it has ended the session.
        private(set) var live = 0, isRevoked = false
        /// The previous token, while the server accepts it.
        private(set) var parent: Int?
        private var graceLeft = Duration.zero

        init(_ kind: ServerKind, grace: Duration) { (self.kind, self.grace) = (kind, grace) }

        mutating func present(_ token: Int) -> Answer {
            // A token of an earlier user's session doesn't end the current one.
            if isRevoked || token / Self.user != live / Self.user { return .refused }
            if token == live {
                parent = kind == .grace ? live : nil
                graceLeft = kind == .grace ? grace : .zero
                live += 1
                return .issued(live)
            }
            if token == parent { return .repeated(live) }
            if kind == .soft { return .refused }
            isRevoked = true
            return .reused
        }

        mutating func signIn() {
            live = (live / Self.user + 1) * Self.user
            (parent, isRevoked) = (nil, false)
        }

        mutating func pass(_ time: Duration) {
            graceLeft = max(graceLeft - time, .zero)
            if graceLeft == .zero { parent = nil }
        }
    }
}
