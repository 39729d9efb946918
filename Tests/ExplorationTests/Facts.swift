import AccessTokens

/// What happened in one execution, in order: what the rules are checked against.
struct Facts: Sendable {
    /// A load, as its server saw it.
    struct Load: Sendable {
        let began: Int
        let beganAt: Duration
        var token: AccessToken?
        var ended: Int?
        var endedAt: Duration?
        var wasCancelled = false
        var hasFailed = false
    }

    /// A sign-out or a replacement, from its call to its return.
    struct Fence: Sendable {
        let began: Int
        var ended: Int?
        /// The token that replaces; `nil`: a sign-out.
        let token: AccessToken?
    }

    /// An invalidation, from its call to its return.
    struct Invalidation: Sendable {
        let token: AccessToken
        let began: Int
        var ended: Int?
    }

    /// A question and its answer.
    struct Question: Sendable {
        let caller: String
        let isCallback: Bool
        let limit: Duration?
        let began: Int
        let beganAt: Duration
        var ended: Int?
        var endedAt = Duration.zero
        var answers = 0
        var result: Result<AccessToken, any Error>?
        /// When its caller was cancelled, if it was.
        var cancelledAt: Duration?
    }

    var loads: [Load] = []
    var fences: [Fence] = []
    var invalidations: [Invalidation] = []
    var questions: [Question] = []
    /// When a caller was cancelled, with all that it asks from then on.
    var cancelled: [String: Duration] = [:]
    private var moment = 0

    /// The next point in the order of events.
    mutating func tick() -> Int {
        moment += 1
        return moment
    }
}
