import AccessTokensHTTP

/// The last nonce of each server, as a pure value.
///
/// A nonce is never sent to an origin other than its server's. Answers can arrive out of order, so the newest nonce of an origin
/// is unknown, and the last one received is kept. If that is the older one, the next request is refused once and sent again with
/// the nonce of *its own* refusal, so the order costs a request no more than that.
///
/// Source: RFC 9449 §8, §9.
struct DPoPNonces: Sendable, Hashable {
    /// More servers than a program uses; the least recently used nonce is forgotten, which costs one refusal.
    static let mostOrigins = 64

    /// Far above what servers send (Bluesky's have 43 bytes), and a fraction of what servers accept as a header.
    static let longest = 1024

    private struct Entry: Sendable, Hashable {
        let origin: Origin
        let nonce: String
    }

    /// The entries; the most recently used one comes last.
    private var entries: [Entry] = []

    var count: Int { entries.count }

    /// Returns the nonce for the next request to an origin, which counts as a use of it.
    mutating func nonce(for origin: Origin) -> String? {
        guard let index = entries.firstIndex(where: { $0.origin == origin }) else { return nil }
        let entry = entries.remove(at: index)
        entries.append(entry)
        return entry.nonce
    }

    /// Remembers a nonce in place of the origin's last one.
    ///
    /// - Throws: ``DPoPError`` with the code `invalidNonce`; the last one stays.
    mutating func remember(_ nonce: String, for origin: Origin) throws(DPoPError) {
        try Self.check(nonce)
        entries.removeAll { $0.origin == origin }
        if entries.count == Self.mostOrigins { entries.removeFirst() }
        entries.append(Entry(origin: origin, nonce: nonce))
    }

    /// Throws unless the nonce can be used in a proof.
    static func check(_ nonce: String) throws(DPoPError) {
        guard nonce.utf8.count <= longest else {
            throw DPoPError(.invalidNonce, "it has \(nonce.utf8.count) bytes; at most \(longest) are accepted")
        }
        // RFC 9449 §8.1: 1*NQCHAR. Two headers joined by a comma and a space are refused, too.
        guard !nonce.isEmpty, nonce.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != 0x22 && $0 != 0x5C }) else {
            throw DPoPError(.invalidNonce, "it is empty, has invalid characters, or the header is repeated")
        }
    }
}
