/// How a search for an order ended.
@usableFromInline
enum LinearizationEnding: Sendable {
    /// There is an order.
    case order
    /// There is none.
    case deadEnd(DeadEnd)
    /// The limit was reached first.
    case undecided
}

/// The order that gets furthest, where there is none that explains all.
@usableFromInline
struct DeadEnd: Sendable {
    /// An operation that takes effect, and the number of the state it leads to.
    struct Step: Sendable {
        let call: Int
        let state: Int
    }

    let steps: [Step]
    /// The return that can't be explained, by its place in ``Overlaps/returns``.
    ///
    /// No order explains more returns than those before it. So nothing that was called after it matters.
    let position: Int
}
