public import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Whether the tests do all that they can, or only as much as fits into a minute in a debug build.
///
/// They do in release builds, which CI tests each night, unless `EVERYDAY` is set, and in debug builds with `THOROUGH=1`.
public let isThorough: Bool = {
    #if DEBUG
    ProcessInfo.processInfo.environment["THOROUGH"] != nil
    #else
    ProcessInfo.processInfo.environment["EVERYDAY"] == nil
    #endif
}()

extension BinaryInteger {
    /// How many rounds, schedules or seeds a test takes: a few every day, many in a thorough run.
    public static func everyday(_ few: Self, thorough many: Self) -> Self { isThorough ? many : few }
}

extension Trait where Self == ConditionTrait {
    /// For tests that take seconds of computing in a debug build, or wait for seconds: they run in a thorough run only.
    public static var thorough: Self {
        .enabled(if: isThorough, "it takes long: it runs in release builds, as CI's do, and with THOROUGH=1")
    }
}
