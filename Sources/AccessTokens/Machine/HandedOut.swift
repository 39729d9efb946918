/// The tokens of the current session: those that the service has handed out since the last reset.
///
/// It tells a request of this session from one of an earlier user. Digests in place of tokens: they take no memory that matters, and
/// no secret outlives its use. Two different tokens have the same digest once in 2^64.
struct HandedOut: Sendable {
    /// With tokens of 5 minutes that is more than 3 hours, longer than a request is under way.
    static let limit = 64

    private var digests: [Int] = []

    mutating func note(_ token: AccessToken) {
        let digest = token.value.hashValue
        guard digest != digests.last else { return }
        if digests.count == Self.limit { digests.removeFirst() }
        digests.append(digest)
    }

    func contains(_ token: AccessToken) -> Bool {
        digests.contains(token.value.hashValue)
    }
}
