import AccessTokens

/// The events of one execution, in order; the rules are checked against them.
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
        /// The new token; `nil`: a sign-out.
        let token: AccessToken?
        /// Whether it went through the shim: callbacks that are called later come after it.
        var isCallback = false
    }

    /// An invalidation, from its call to its return.
    struct Invalidation: Sendable {
        let token: AccessToken
        let began: Int
        var ended: Int?
        /// Whether it went through the shim.
        var isCallback = false
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

    /// From a call to its return, or to its handler's call.
    struct Span: Sendable {
        let began: Int
        let ended: Int?
        let isCallback: Bool

        /// Whether this took effect before the other: it had returned when the other was called, or both went through the shim in
        /// this order.
        func isBefore(_ other: Span) -> Bool {
            isCallback && other.isCallback ? began < other.began : ended.map { $0 < other.began } ?? false
        }
    }

    var loads: [Load] = []
    var fences: [Fence] = []
    var invalidations: [Invalidation] = []
    var questions: [Question] = []
    /// When each caller was cancelled, which also applies to its later calls.
    var cancelled: [String: Duration] = [:]
    private var moment = 0

    /// The next point in the order of events.
    mutating func tick() -> Int {
        moment += 1
        return moment
    }
}

extension Facts.Fence {
    var span: Facts.Span { Facts.Span(began: began, ended: ended, isCallback: isCallback) }
}

extension Facts.Invalidation {
    var span: Facts.Span { Facts.Span(began: began, ended: ended, isCallback: isCallback) }
}

extension Facts.Question {
    var span: Facts.Span { Facts.Span(began: began, ended: ended, isCallback: isCallback) }
}
