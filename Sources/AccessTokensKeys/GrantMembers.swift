import AccessTokens

/// The services of the keys that share a grant, and the sign-outs that they have yet to learn of: a pure value behind the grant's
/// lock.
struct GrantMembers {
    private struct Member {
        weak var service: TokenService?
        /// How many of the grant's sign-outs have taken effect in the service.
        var signOuts: Int
    }

    private var members: [Int: Member] = [:]
    private var last = 0
    private var signOuts = 0

    /// A key's service is about to be made; returns its number.
    mutating func join() -> Int {
        last += 1
        members[last] = Member(signOuts: signOuts)
        return last
    }

    mutating func attach(_ member: Int, to service: TokenService) {
        members[member]?.service = service
    }

    mutating func leave(_ member: Int) {
        members[member] = nil
    }

    func service(of member: Int) -> TokenService? { members[member]?.service }

    func services(but member: Int?) -> [Int: TokenService] {
        members.filter { $0.key != member }.compactMapValues { $0.service }
    }

    /// A user has signed out, through a key whose own service knows already.
    mutating func signOut(by member: Int?) {
        signOuts += 1
        if let member { members[member]?.signOuts = signOuts }
    }

    /// Whether a sign-out through another key has yet to take effect in a key's service; marks it as taking effect now.
    mutating func takeSignOut(_ member: Int) -> Bool {
        guard let taken = members[member]?.signOuts, taken < signOuts else { return false }
        members[member]?.signOuts = signOuts
        return true
    }
}
