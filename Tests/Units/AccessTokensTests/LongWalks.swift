import Foundation
import Testing

extension Trait where Self == ConditionTrait {
    /// For walks that take a minute in a debug build: they run in release builds, as CI's do, and with `LONG_WALKS=1`.
    static var longWalk: Self {
        #if DEBUG
        let environment = ProcessInfo.processInfo.environment
        return .enabled(
            if: environment["LONG_WALKS"] != nil || environment["STATE_DIAGRAM"] != nil,
            "a long walk: it runs in release builds, as CI's do, and with LONG_WALKS=1")
        #else
        return .enabled(if: true)
        #endif
    }
}
