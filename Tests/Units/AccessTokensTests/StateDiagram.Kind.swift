@testable import AccessTokens

extension StateDiagram {
    /// Two properties of a service that decide where some steps lead.
    struct Kind: Hashable, CaseIterable {
        let isRepeatable: Bool
        let hasStore: Bool

        static let allCases = [true, false].flatMap { isRepeatable in
            [true, false].map { Kind(isRepeatable: isRepeatable, hasStore: $0) }
        }

        /// Whether the walk tries an event; in release builds it tries all.
        ///
        /// Loads that may be repeated make ten times as many states. Debug builds, which are slow, leave out for them what
        /// only changes how loads are paced, or leads where another event leads too: both draw the same.
        func tries(_ event: World.Event) -> Bool {
            #if DEBUG
            return switch event {
            case .failWithRetryAfter, .succeedWithRejected, .invalidateOlder: !isRepeatable
            case .succeedBarely, .failSalvaging, .invalidateCurrent, .storeFails, .replaceExpired:
                !isRepeatable || !hasStore
            default: true
            }
            #else
            return true
            #endif
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
