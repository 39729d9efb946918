import Synchronization

/// The executions that an explorer currently drives in this process.
///
/// Code that would share a task across the program, such as a sleep, checks here first: a task that is started in an execution
/// ends with it, and one that was started outside doesn't know its time.
package enum DrivenExecutions {
    private static let count = Atomic(0)

    /// Whether there are any such executions.
    package static var areRunning: Bool { count.load(ordering: .relaxed) > 0 }

    /// Runs one such execution.
    package static func run<Result>(_ execution: () -> Result) -> Result {
        count.add(1, ordering: .relaxed)
        defer { count.subtract(1, ordering: .relaxed) }
        return execution()
    }
}

// MARK: Time and chance that repeat

/// An instant of a clock that begins at zero.
package protocol OffsetInstant: InstantProtocol, Sendable where Duration == Swift.Duration {
    var offset: Duration { get }
    init(offset: Duration)
}

extension OffsetInstant {
    /// The instant that is later by a duration.
    public func advanced(by duration: Duration) -> Self { Self(offset: offset + duration) }

    /// How much later another instant is.
    public func duration(to other: Self) -> Duration { other.offset - offset }

    /// Whether one instant is before another.
    public static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
}

/// A small random number generator that produces the same sequence for the same seed, on every platform and in every release.
///
/// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
@usableFromInline
package struct SplitMix64: RandomNumberGenerator, Sendable {
    @usableFromInline var state: UInt64

    @inlinable package init(seed: UInt64) {
        state = seed
    }

    @inlinable package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to, but not including, `bound`, which must be positive.
    @inlinable package mutating func below(_ bound: Int) -> Int {
        Int(next().multipliedFullWidth(by: UInt64(bound)).high)
    }
}
