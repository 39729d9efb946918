import AccessTokens

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A sign-in or a sign-out that hasn't reached the shared store yet, as a pure value.
///
/// The response to its swap may be lost; then the swap is tried again. It must not overwrite a later sign-in or sign-out of another
/// service. The grants that it displaces are handed over exactly once, by whichever attempt finds that the fence is in the store.
struct SharedFence: Sendable {
    /// A swap whose response is still unknown.
    private struct Attempt: Sendable {
        let id: String
        /// The grants that it displaces if it takes effect; of several attempts only the last one still can take effect.
        let displaced: [DiscardedGrant]
    }

    enum Verdict {
        /// Write this record in place of the one that was read.
        case write(GrantRecord)
        /// The fence is in the store, or another service's fence has come after it.
        case settled([DiscardedGrant])
    }

    let number: Int
    /// Names the fence in records.
    let id: String
    /// The token of a sign-in; `nil`: a sign-out.
    let token: StoredToken?
    /// Whether a user has signed out since this service's last write, even if a user has signed in again.
    private var signsOut: Bool
    /// Whether the store could not even be read, so that it is unknown whether another service's fence came first.
    private var isUnread = false
    /// The fence in the record when this one was first tried; `nil`: it hasn't been tried yet.
    private var earlier: String?
    private var attempts: [Attempt]

    /// - Parameter last: The fence that this one replaces while the outcome of `last` is unknown.
    init(_ token: StoredToken?, number: Int, owner: String, after last: SharedFence?) {
        self.number = number
        self.token = token
        id = "\(owner).fence.\(number)"
        signsOut = token == nil || last?.signsOut ?? false
        attempts = []
        if let last { follow(last) }
    }

    /// Notes that an earlier fence of this service has an unknown outcome.
    mutating func follow(_ last: SharedFence) {
        attempts = last.attempts.suffix(8) + attempts.filter { $0.id == id }
    }

    /// Notes the outcome of an attempt, of this fence or of an earlier one.
    mutating func heed(_ other: SharedFence) {
        if number == other.number { self = other } else { follow(other) }
    }

    /// Notes that the fence before this one is in the store or has been overtaken, and that the grants it displaced were handed
    /// over.
    ///
    /// No attempt of an earlier fence can take effect any longer, and no earlier sign-out needs to be written.
    mutating func followsSettled() {
        attempts.removeAll { $0.id != id }
        signsOut = token == nil
    }

    func verdict(on record: GrantRecord?, knowing knowledge: SharedFlight.Knowledge = .init(), wall: Double?) -> Verdict {
        let fence = record?.fence ?? ""
        // The session that the fence was meant for has ended, or another user's sign-in has replaced it.
        let isTooLate = isUnread && knowledge.hasNews(record)
        let isForeign = !isOwn(record) && (earlier.map { fence != $0 } ?? false || isTooLate)
        if fence == id || isForeign {
            // If another service's sign-in or sign-out has overtaken this sign-in, no caller gets this one's token.
            let own = isForeign ? token.map { DiscardedGrant(token: $0.token, reason: .superseded) } : nil
            return .settled((attempts.last { $0.id == id }?.displaced ?? []) + [own].compactMap { $0 })
        }
        let last = record ?? .none, count = last.generation(after: knowledge.seen, at: wall)
        // After a backup was restored, plain counting could repeat the number of a sign-out that the backup lacks.
        let first = max(count + 1, GrantRecord.generation(at: wall))
        // If a sign-in and the sign-out before it are written together, the sign-in's generation follows the sign-out's.
        var next = GrantRecord(write: id, generation: signsOut && token != nil ? first + 1 : first)
        next.fence = id
        // A removed record may have had any sign-out, and a restored one may lack the last one.
        let known = last.isBlank ? count : max(last.signedOut, knowledge.signedOut ?? 0)
        next.signedOut = signsOut ? first : known
        next.token = token?.token
        next.received = token?.received.timeIntervalSinceReferenceDate ?? 0
        return .write(next)
    }

    private func isOwn(_ record: GrantRecord?) -> Bool { attempts.contains { $0.id == record?.fence } }

    /// Returns whether another service's sign-out, unknown to this one, precedes this sign-in; then the session here ends first.
    ///
    /// If the record has a session that the service can't know, this sign-in ends that session: it may be another user's.
    mutating func endsSession(before record: GrantRecord?, knowing knowledge: SharedFlight.Knowledge) -> Bool {
        guard !signsOut, !isOwn(record) else { return false }
        let isNews = knowledge.hasNews(record)
        // The user is signed out here, or the store could not be read. A service that has just started reads the store first.
        let isUnknown = knowledge.session == nil && (isUnread || knowledge.signedOut != nil)
        if isNews || isUnknown { signsOut = record?.token != nil }
        return isNews
    }

    /// Notes that the store could not be read.
    mutating func noteUnread() { isUnread = true }

    /// The grants that it displaces if it replaces this record, including those of an earlier fence that has only now been found.
    func displaced(in record: GrantRecord?) -> [DiscardedGrant] {
        let found = record?.token.map { DiscardedGrant(token: $0, reason: signsOut ? .signedOut : .replaced) }
        let before = attempts.last { $0.id == record?.fence && $0.id != id }?.displaced ?? []
        return before + [found].compactMap { $0 }
    }

    /// Notes an attempt to replace this record whose outcome is unknown.
    mutating func noteAttempt(over record: GrantRecord?) {
        let displaced = displaced(in: record)
        earlier = earlier ?? record?.fence ?? ""
        attempts.removeAll { $0.id == id }
        attempts.append(Attempt(id: id, displaced: displaced))
    }

    /// Whether the record is exactly what this fence wrote, so that there is nothing new in it for the service.
    func stands(in record: GrantRecord?) -> Bool { record?.fence == id && record?.token == token?.token }
}
