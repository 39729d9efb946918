@testable import AccessTokens

extension StateDiagram {
    /// Two properties of a service that decide where some steps lead.
    struct Kind: Hashable, CaseIterable {
        let isRepeatable: Bool
        let hasStore: Bool

        static let allCases = [true, false].flatMap { isRepeatable in
            [true, false].map { Kind(isRepeatable: isRepeatable, hasStore: $0) }
        }

        /// Whether the walk tries an event.
        ///
        /// A store, and loads that may be repeated, each make ten times as many states. With one of them the walk leaves out
        /// events that only change the pacing of loads, with both also those that lead to the same place as another event: the
        /// picture is the same. The walks of ``StateMachineWalkTests`` leave out less.
        func tries(_ event: World.Event) -> Bool {
            switch event {
            case .failWithRetryAfter, .succeedWithRejected, .invalidateOlder: !isRepeatable && !hasStore
            case .lostEnds, .lostFails: false
            case .succeedBarely, .failSalvaging, .invalidateCurrent, .storeFails, .replaceExpired: !isRepeatable || !hasStore
            default: true
            }
        }

        /// ¹: loads may be repeated, ²: they must not, ³: with a store, ⁴: without one.
        static func mark(of kinds: Set<Kind>, among possible: Set<Kind>) -> String {
            let byRepeating: [(String, (Kind) -> Bool)] = [
                ("", { _ in true }), ("¹", \.isRepeatable), ("²", { !$0.isRepeatable }),
            ]
            let byStore: [(String, (Kind) -> Bool)] = [("", { _ in true }), ("³", \.hasStore), ("⁴", { !$0.hasStore })]
            for (first, isIn) in byRepeating {
                for (second, isAlsoIn) in byStore where Set(possible.filter { isIn($0) && isAlsoIn($0) }) == kinds {
                    return first + second
                }
            }
            return "*"
        }
    }
}
