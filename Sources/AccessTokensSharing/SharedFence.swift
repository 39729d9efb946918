import AccessTokens

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A sign-in or a sign-out that the shared store has yet to hear of, as a pure value.
///
/// The answer to its swap may be lost, and then it is tried again. It must neither overtake a later sign-in or sign-out of another
/// service nor lose what it puts aside: that is handed over once, by whichever attempt learns that the fence stands.
struct SharedFence: Sendable {
    /// A swap of which no answer has come.
    private struct Attempt: Sendable {
        let id: String
        /// What it puts aside if it takes effect; of several attempts only the last one still can.
        let displaced: [DiscardedGrant]
    }

    enum Verdict {
        /// This record is to be written in place of the one that was read.
        case write(GrantRecord)
        /// The fence stands, or another service's has come after it.
        case settled([DiscardedGrant])
    }

    let number: Int
    /// Names the fence in records.
    let id: String
    /// `nil`: a sign-out.
    let token: StoredToken?
    /// Whether a user has signed out since the store heard of this service last, even if one has signed in again.
    private var signsOut: Bool
    /// Whether the store could not even be read: then nothing tells whether another service's fence came before this one or after it.
    private var isUnread = false
    /// The fence that the record came from when this one was tried first; `nil`: it has yet to be tried.
    private var earlier: String?
    private var attempts: [Attempt]

    /// - Parameters:
    ///   - last: The fence in whose place this one comes, before the store has answered for it.
    ///   - isOvertaken: Whether the record's session is another's, which has overtaken the one here.
    init(_ token: StoredToken?, number: Int, owner: String, after last: SharedFence?, isOvertaken: Bool = false) {
        self.number = number
        self.token = token
        id = "\(owner).fence.\(number)"
        signsOut = token == nil || last?.signsOut ?? isOvertaken
        attempts = []
        if let last { follow(last) }
    }

    /// Another fence of this service came before, and nothing is known of it.
    mutating func follow(_ last: SharedFence) {
        attempts = last.attempts.suffix(8) + attempts.filter { $0.id == id }
    }

    /// What is known now of an attempt: of this fence, or of one that came before.
    mutating func heed(_ other: SharedFence) {
        if number == other.number { self = other } else { follow(other) }
    }

    /// The fence before this one stands, or has been overtaken, and what it put aside is handed over.
    ///
    /// No attempt of an earlier fence can take effect any longer, nor has the store anything to hear of an earlier sign-out.
    mutating func followsSettled(isOvertaken: Bool = false) {
        attempts.removeAll { $0.id != id }
        signsOut = token == nil || isOvertaken
    }

    /// - Parameter known: The last sign-out that the service knows of, as ``GrantRecord/signedOut``; `nil`: it has yet to read.
    func verdict(on record: GrantRecord?, seen: UInt64?, knowing known: UInt64? = nil, wall: Double?) -> Verdict {
        let fence = record?.fence ?? ""
        let isOwn = attempts.map(\.id).contains(fence)
        // The session that it was meant for has ended, or its sign-in has yielded to another user.
        let isTooLate = isUnread && hasNews(record, for: known)
        let isForeign = !isOwn && (earlier.map { fence != $0 } ?? false || isTooLate)
        if fence == id || isForeign {
            // A sign-in that another service's has overtaken gives no one its token.
            let own = isForeign ? token.map { DiscardedGrant(token: $0.token, reason: .superseded) } : nil
            return .settled((attempts.last { $0.id == id }?.displaced ?? []) + [own].compactMap { $0 })
        }
        let first = (record ?? .none).generation(after: seen, at: wall) + 1
        // A sign-in that the store hears of together with the sign-out before it has the generation after that one's.
        var next = GrantRecord(write: id, generation: signsOut && token != nil ? first + 1 : first)
        next.fence = id
        next.signedOut = signsOut ? first : record?.signedOut ?? 0
        next.token = token?.token
        next.received = token?.received.timeIntervalSinceReferenceDate ?? 0
        return .write(next)
    }

    private func hasNews(_ record: GrantRecord?, for known: UInt64?) -> Bool {
        if let record, let known { known < record.signedOut } else { false }
    }

    /// Whether this sign-in comes after another service's sign-out that the service didn't know of: it ends the session here first.
    ///
    /// If the record has a session, too, that one ends with this sign-in: it may be another user's.
    mutating func endsSession(before record: GrantRecord?, knowing known: UInt64?) -> Bool {
        guard !signsOut, record?.fence != id, hasNews(record, for: known) else { return false }
        signsOut = record.map { !$0.isTombstone } ?? false
        return true
    }

    /// The store could not be read.
    mutating func noteUnread() { isUnread = true }

    /// What it puts aside in this record's place, and what an earlier one of this service did that is only known now.
    func displaced(in record: GrantRecord?) -> [DiscardedGrant] {
        let found = record?.token.map { DiscardedGrant(token: $0, reason: signsOut ? .signedOut : .replaced) }
        let before = attempts.last { $0.id == record?.fence && $0.id != id }?.displaced ?? []
        return before + [found].compactMap { $0 }
    }

    /// Nothing is known of the swap in this record's place.
    mutating func noteAttempt(over record: GrantRecord?) {
        let displaced = displaced(in: record)
        earlier = earlier ?? record?.fence ?? ""
        attempts.removeAll { $0.id == id }
        attempts.append(Attempt(id: id, displaced: displaced))
    }

    /// Whether the record has what this fence wrote, and so nothing that the service doesn't know.
    func stands(in record: GrantRecord?) -> Bool { record?.fence == id && record?.token == token?.token }
}
