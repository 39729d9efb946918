import AccessTokens

extension SharedFlight {
    /// What survives a flight.
    struct Knowledge: Sendable, Hashable {
        /// The generation of the last token or tombstone that the service took over.
        var generation: UInt64?
        /// The latest generation that the service has seen; `nil`: it has yet to read.
        var seen: UInt64?
        /// The revision that was read last, and when it was written or, if the store can't tell, seen first: a doubt counts from there.
        var revision: SharedRecord.Revision?
        var since = Duration.zero
        /// How many records this service has written.
        var writes = 0
    }
}

extension SharedFlight.Knowledge {
    /// Adds what a flight has learnt, which may end later than one that began after it.
    ///
    /// - Parameter isFenced: Whether a sign-in or a sign-out has come since it began: then its record is of the past.
    mutating func learn(_ other: Self, isFenced: Bool) {
        writes = max(writes, other.writes)
        if !isFenced {
            generation = [generation, other.generation].compactMap { $0 }.max()
            seen = [seen, other.seen].compactMap { $0 }.max()
        }
        // Of two looks the later one counts.
        if revision == other.revision || since <= other.since { (revision, since) = (other.revision, other.since) }
    }

    /// A sign-in or a sign-out of the service stands in the store.
    mutating func take(_ record: GrantRecord) {
        generation = record.generation
        seen = max(seen ?? 0, record.generation)
    }
}
