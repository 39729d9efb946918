import AccessTokens

/// A mark whose load no longer sends anything: it is in the record, or its swap may still take effect.
///
/// Others would respect it until the doubt has passed. So its service overwrites it when its flight has ended. If the mark's swap
/// hasn't taken effect yet, overwriting changes the record's revision, and the swap can no longer succeed. A later flight's mark
/// is another write, and stays.
struct StrayMark: Sendable, Hashable {
    /// Names the write that made the mark.
    let write: String
    /// The revision that it replaces.
    let base: SharedRecord.Revision?
    /// The record after the mark is taken back.
    var record: GrantRecord

    /// - Parameter before: The record without the mark.
    init(write: String, base: SharedRecord.Revision?, restoring before: GrantRecord) {
        self.write = write
        self.base = base
        record = before
        record.write = write + ".back"
    }

    /// Returns the swap that takes the mark back; `nil` if the mark is gone and can't appear any more.
    func remedy(for sighting: SharedFlight.Sighting?) -> SharedFlight.Step? {
        guard sighting?.record.write == write || sighting?.revision == base else { return nil }
        return .swap(record, ifAt: sighting?.revision)
    }
}

extension SharedSession {
    /// How often the service tries to take a mark back, with pauses that double from 1 s: for 127 s, when most doubts have
    /// passed.
    private static let attempts = 8

    /// Overwrites a mark that has lost its purpose, whether or not its swap succeeds.
    func takeBack(_ stray: StrayMark) async {
        defer { forget(stray) }
        for attempt in 0..<Self.attempts {
            if attempt > 0 { await pause(for: .seconds(1 << (attempt - 1))) }
            if (try? await writeOver(stray)) != nil { return }
        }
    }

    private func writeOver(_ stray: StrayMark) async throws {
        var sighting = try await read()
        while case .swap(let record, let revision)? = stray.remedy(for: sighting),
            case .conflict(let other) = try await swap(record, ifAt: revision)
        {
            sighting = other
        }
    }
}
