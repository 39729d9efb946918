import AccessTokens

/// The services of the keys that share a grant, with the sign-outs that haven't reached them: a pure value behind the grant's
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

    /// Adds a key's service that is about to be made; returns its number.
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

    /// Counts a sign-out, through a key whose own service knows of it already.
    mutating func signOut(by member: Int?) {
        signOuts += 1
        if let member { members[member]?.signOuts = signOuts }
    }

    /// Takes a sign-out through another key that hasn't taken effect in a key's service yet; returns `false` if there is none.
    mutating func takeSignOut(_ member: Int) -> Bool {
        guard let taken = members[member]?.signOuts, taken < signOuts else { return false }
        members[member]?.signOuts = signOuts
        return true
    }
}
