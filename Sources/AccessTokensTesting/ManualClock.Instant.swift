public import TokenServiceConcurrency

extension ManualClock {
    /// A moment on a manual clock.
    public struct Instant: OffsetInstant {
        /// The time between the clock's creation and this moment.
        public let offset: Duration

        /// Creates the moment at which a clock shows `offset`.
        package init(offset: Duration) {
            self.offset = offset
        }
    }
}
