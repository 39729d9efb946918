import AccessTokens

extension SharedFlight {
    /// Why a load failed.
    struct Failure: Sendable, Hashable {
        var error: TokenServiceError
        var retryAfter: Duration?
        /// A new grant that came with it.
        var salvaged: AccessToken?
        /// Whether it is known that the server hasn't spent the refresh token, or what it has answered.
        var isDefinite: Bool
        /// Whether it is the record itself that can't be read or written: asking again is of no use.
        var isPermanent = false
        /// Whether the load was given up before anything was sent: that says nothing about the server.
        var isUnsent = false

        static func == (a: Failure, b: Failure) -> Bool {
            (a.error.code, a.error.remedy, a.retryAfter, a.salvaged, a.isDefinite)
                == (b.error.code, b.error.remedy, b.retryAfter, b.salvaged, b.isDefinite)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(error.code)
            hasher.combine(isDefinite)
        }
    }
}

/// What a flight fails with that no loader said.
extension SharedFlight.Failure {
    /// Nothing waits for the flight any longer: it has spent nothing.
    static let abandoned = Self(error: TokenServiceError(.loadTimedOut), isDefinite: true)

    /// An event that the flight was not waiting for.
    static let outOfTurn = Self(error: TokenServiceError(.loadFailed), isDefinite: true)

    /// The record is older than one that the service has seen, or gone.
    static let lostInStore = Self(
        error: TokenServiceError(.storeFailed, underlying: RecordLost(), remedy: .signIn), isDefinite: true)

    /// The server has refused the grant when another service presented it.
    static let refusedElsewhere = Self(
        error: TokenServiceError(.loadFailed, underlying: FailedElsewhere.refused, remedy: .signIn), isDefinite: true)

    /// Another service has failed, has ended, or is still at it, and the time for which the fleet waits then has not passed.
    static func elsewhere(_ reason: FailedElsewhere, retryAfter: Duration?) -> Self {
        Self(error: TokenServiceError(.loadFailed, underlying: reason), retryAfter: retryAfter, isDefinite: true)
    }

    /// The shared store failed.
    static func store(_ error: any Error) -> Self {
        // Not one of `seal` or `open`: a key may be locked for a while.
        let isPermanent = error is GrantRecordError
        return Self(error: TokenServiceError(.storeFailed, underlying: error), isDefinite: true, isPermanent: isPermanent)
    }
}

/// The program's own `seal` or `open` failed.
struct SealFailure: Error, CustomStringConvertible {
    let underlying: any Error
    let description = "The shared store's record could not be sealed or opened. It was left as it is: check the key."
}

/// The store has lost what it had acknowledged.
struct RecordLost: Error, CustomStringConvertible {
    let description =
        "The shared store's record was removed, or is an older one than before. Its refresh token may be used up. Sign in again."
}

/// A thousand swaps in a row found another record than the one before.
struct StoreContention: Error, CustomStringConvertible {
    let description = "The shared store's record changed before each of a thousand attempts to replace it."
}

/// A swap was refused although the record still has the revision that it named, so trying again at once could go on without end.
struct StoreContradiction: Error, CustomStringConvertible {
    let description = "The shared store didn't replace the record, although that is still the one that was named."
}

/// Another service that shares the grant keeps this one from loading.
enum FailedElsewhere: Error, CustomStringConvertible {
    case refused, failed, ended, busy
    /// Not another one: its own last request has no answer.
    case unanswered

    var description: String {
        switch self {
        case .refused: "The authorization server refused the shared grant when another process presented it."
        case .failed:
            "Another process that shares the grant has failed to load a token, and no process asks again before its pause has passed."
        case .ended:
            "Another process that shares the grant ended while it loaded a token. Its request may still be on its way, so no process asks "
                + "again before that must have arrived."
        case .unanswered:
            "This process's last request for a token had no answer. It may still be on its way, so no process asks again before it must "
                + "have arrived."
        case .busy:
            "Another process that shares the grant has begun to load a token, and neither saved nor failed in the time that a load may take."
        }
    }
}
