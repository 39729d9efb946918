/// An instant of a clock that begins at zero.
package protocol OffsetInstant: InstantProtocol, Sendable where Duration == Swift.Duration {
    var offset: Duration { get }
    init(offset: Duration)
}

extension OffsetInstant {
    /// The instant that is later by a duration.
    public func advanced(by duration: Duration) -> Self { Self(offset: offset + duration) }

    /// The duration from this instant to another.
    public func duration(to other: Self) -> Duration { other.offset - offset }

    /// Whether one instant is before another.
    public static func < (left: Self, right: Self) -> Bool { left.offset < right.offset }
}
