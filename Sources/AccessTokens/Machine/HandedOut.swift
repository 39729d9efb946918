/// The tokens of the current session: those that the service has handed out since the last reset.
///
/// It distinguishes a request of this session from one of an earlier user. All tokens but the last are kept as digests: they need
/// little memory, and no secret outlives its use. Two different tokens have the same digest once in 2^64 cases.
struct HandedOut: Sendable {
    /// With tokens of 5 minutes that is more than 3 hours, longer than a request is under way.
    static let limit = 64

    /// The last token as a string: most sessions of a tool have no other, and a digest costs more than a token.
    private var last: String?
    private var digests: [Int] = []

    var isEmpty: Bool { last == nil }

    func hasOther(than token: AccessToken?) -> Bool { !digests.isEmpty || last != nil && last != token?.value }

    mutating func note(_ token: AccessToken) {
        guard last != token.value else { return }
        if let last {
            if digests.count == Self.limit - 1 { digests.removeFirst() }
            digests.append(last.hashValue)
        }
        last = token.value
    }

    func contains(_ token: AccessToken) -> Bool {
        last == token.value || digests.contains(token.value.hashValue)
    }
}
