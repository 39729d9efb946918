import AccessTokens
import TokenServiceConcurrency

/// The pending steps of a grant's vault, and the task that performs them: a pure value behind the grant's lock.
struct GrantWork: Sendable {
    struct Item: Sendable {
        let step: VaultStep
        /// The tokens that the other keys' services give up when they learn of a sign-in or a sign-out.
        let others: SingleResult<[AccessToken]>?
        let end: SingleResult<SessionChange>
    }

    private var items: [Item] = []
    private var isUnderWay = false
    /// Does the work, as urgently as its most urgent waiter needs it.
    private var worker: Task<Void, any Error>?
    private var urgency = Urgency.background

    /// Adds an item at the end; returns whether a task has to begin for it.
    mutating func append(_ item: Item, as urgency: Urgency) -> Bool {
        items.append(item)
        guard !isUnderWay else { return false }
        (isUnderWay, self.urgency) = (true, urgency)
        return true
    }

    /// Notes the task that has begun; returns the urgency that it needs by now.
    mutating func began(_ worker: Task<Void, any Error>) -> Urgency {
        self.worker = worker
        return urgency
    }

    /// Returns the task to make more urgent, if it is less urgent.
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
