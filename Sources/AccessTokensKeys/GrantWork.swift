import AccessTokens
import TokenServiceConcurrency

/// What a grant's vault has yet to do, and the task that does it: a pure value behind the grant's lock.
struct GrantWork: Sendable {
    struct Item: Sendable {
        let step: VaultStep
        /// What the other keys' services give up when they hear of a sign-in or a sign-out.
        let others: SingleResult<[AccessToken]>?
        let end: SingleResult<SessionChange>
    }

    private var items: [Item] = []
    private var isUnderWay = false
    /// Does the work, as urgently as the most urgent of those who wait for it.
    private var worker: Task<Void, any Error>?
    private var urgency = Urgency.background

    /// Puts an item behind the others; returns whether a task has to begin for it.
    mutating func append(_ item: Item, as urgency: Urgency) -> Bool {
        items.append(item)
        guard !isUnderWay else { return false }
        (isUnderWay, self.urgency) = (true, urgency)
        return true
    }

    /// A task has begun; returns how urgent it has to be by now.
    mutating func began(_ worker: Task<Void, any Error>) -> Urgency {
        self.worker = worker
        return urgency
    }

    /// The task to make more urgent, if it is less.
    mutating func raise(to urgency: Urgency) -> Task<Void, any Error>? {
        guard isUnderWay, self.urgency < urgency else { return nil }
        self.urgency = urgency
        return worker
    }

    /// Takes the next item; `nil`: the task ends.
    mutating func next() -> Item? {
        guard items.isEmpty else { return items.removeFirst() }
        (isUnderWay, worker) = (false, nil)
        return nil
    }
}
