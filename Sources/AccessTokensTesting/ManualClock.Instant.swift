extension ManualClock {
    /// A moment on a manual clock.
    public struct Instant: InstantProtocol {
        /// The time between the clock's creation and this moment.
        public let offset: Duration

        /// Creates the moment at which a clock shows `offset`.
        public init(offset: Duration) {
            self.offset = offset
        }

        /// The moment `duration` after this one, or before it if negative.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

        /// The time from this moment to another, negative if the other is earlier.
        public func duration(to other: Instant) -> Duration { other.offset - offset }

        /// Whether the first moment is earlier than the second.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }
}
