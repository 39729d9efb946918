import AccessTokens
import TokenServiceConcurrency

/// One key's access to a grant that several keys use: the loader of its service, which also passes on sign-ins and sign-outs.
final class GrantShare: TokenLoader, GrantLender {
    private let grant: LentGrant
    private let loader: any TokenLoader
    /// How long a load may keep the other keys waiting: as long as it would block other loads of its own service.
    private let patience: Duration
    private let member: Int

    init(in grant: LentGrant, _ loader: any TokenLoader, _ policy: RefreshPolicy) {
        self.grant = grant
        self.loader = loader
        patience = policy.loadTimeout * (loader.isRepeatable ? 1 : RefreshPolicy.timeoutsUntilForgotten)
        member = grant.join()
    }

    deinit {
        grant.leave(member)
    }

    func attach(to service: TokenService) { grant.attach(member, to: service) }

    var isRepeatable: Bool { loader.isRepeatable }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        try await grant.load(replacing: previous, by: member, from: loader, patience: patience)
    }

    func fence(_ token: AccessToken?, unlessFenced: Bool, _ fence: () -> TokenService.Fence?) -> TokenService.Fence? {
        grant.fence(token, by: member, unlessFenced: unlessFenced, fence)
    }

    func signInState() async -> SignInState { await grant.signInState() }

    func raise(to urgency: Urgency) { grant.raiseWork(to: urgency) }

    func retry() { grant.retry() }
    func saveAgain() { grant.saveAgain() }
    func drain(within limit: Duration) async -> DrainResult { await grant.drain(within: limit) }
}

// MARK: The keys' services

/// The services of the keys that share a grant: a value behind the grant's lock.
struct GrantMembers {
    private struct Member {
        weak var service: TokenService?
    }

    private var members: [Int: Member] = [:]
    private var last = 0

    /// Adds a key's service that is about to be made, and has nothing that a sign-out could end; returns its number.
    mutating func join() -> Int {
        last += 1
        members[last] = Member()
        return last
    }

    mutating func attach(_ member: Int, to service: TokenService) {
        members[member]?.service = service
    }

    mutating func leave(_ member: Int) {
        members[member] = nil
    }

    func service(of member: Int) -> TokenService? { members[member]?.service }

    /// Returns the services of the other keys, which the caller releases after unlocking.
    func services(but member: Int?) -> [TokenService] {
        members.compactMap { $0.key == member ? nil : $0.value.service }
    }
}

// MARK: The keys' turns

/// The order in which keys that share a grant load with it, first come, first served: a pure value behind the grant's lock.
///
/// After unlocking, complete each result that it returns: it belongs to the load whose turn has come.
struct GrantTurns: Sendable {
    private struct Place: Sendable {
        let number: Int
        /// The key that loads.
        let member: Int
        let load: LoadMembership?
        var urgency: Urgency
        /// Complete when its turn has come.
        let start: SingleResult<Void>
        /// When its turn ends even if its load continues; `nil`: the load hasn't begun.
        var end: Duration?
    }

    /// The places in the line; the first one has its turn.
    private var line: [Place] = []
    private var last = 0

    /// The load that has its turn.
    var holder: LoadMembership? { line.first?.load }

    /// Adds a load to the line.
    mutating func enter(
        at now: Duration, by member: Int, of load: LoadMembership?, as urgency: Urgency
    ) -> (number: Int, start: SingleResult<Void>, next: SingleResult<Void>?) {
        last += 1
        let place = Place(number: last, member: member, load: load, urgency: urgency, start: SingleResult())
        line.append(place)
        // The alarm may not have fired yet.
        let isOver = line.first?.end.map { $0 <= now } ?? false
        let next = isOver ? end() : line.count == 1 ? place.start : nil
        return (last, place.start, next)
    }

    /// Makes the loads before a waiting one as urgent as it is; returns the keys of those that were less urgent.
    mutating func raise(before number: Int, to urgency: Urgency) -> [Int] {
        let raised = line.indices.filter { line[$0].number < number && line[$0].urgency < urgency }
        for index in raised { line[index].urgency = urgency }
        return raised.map { line[$0].member }
    }

    /// Begins a load whose turn has come; returns `false` if it has lost its turn.
    mutating func begin(_ number: Int, until end: Duration) -> Bool {
        guard line.first?.number == number else { return false }
        line[0].end = end
        return true
    }

    /// Removes a load that has ended or has stopped waiting.
    mutating func leave(_ number: Int) -> SingleResult<Void>? {
        guard let index = line.firstIndex(where: { $0.number == number }) else { return nil }
        line.remove(at: index)
        return index == 0 ? line.first?.start : nil
    }

    /// Ends the turn, even if its load continues.
    mutating func end() -> SingleResult<Void>? {
        line.first.flatMap { leave($0.number) }
    }
}
