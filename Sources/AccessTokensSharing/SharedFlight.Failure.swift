import AccessTokens

extension SharedFlight {
    /// Why a load failed.
    struct Failure: Sendable, Hashable {
        @CodeAndRemedy var error: TokenServiceError
        var retryAfter: Duration?
        /// A new grant that came with the failure.
        var salvaged: AccessToken?
        /// Whether it is certain what the server has answered, or that it hasn't spent the refresh token.
        var isDefinite: Bool
        /// Whether the record itself can't be read or written, so that trying again is useless.
        var isPermanent = false
        /// Whether the load was given up before anything was sent, so that it says nothing about the server.
        var isUnsent = false
    }

    /// An error compared by its code and remedy; its cause can't be compared.
    @propertyWrapper struct CodeAndRemedy: Sendable, Hashable {
        var wrappedValue: TokenServiceError

        static func == (a: Self, b: Self) -> Bool {
            (a.wrappedValue.code, a.wrappedValue.remedy) == (b.wrappedValue.code, b.wrappedValue.remedy)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(wrappedValue.code)
            hasher.combine(wrappedValue.remedy)
        }
    }
}

/// The failures of a flight that don't come from its loader.
extension SharedFlight.Failure {
    /// Nothing waits for the flight any longer, and it has spent nothing.
    static let abandoned = Self(error: TokenServiceError(.loadTimedOut), isDefinite: true)

    /// The flight got an event that it was not waiting for.
    static let outOfTurn = Self(error: TokenServiceError(.loadFailed), isDefinite: true)

    /// The record is older than one that the service has seen, or gone.
    static let lostInStore = Self(
        error: TokenServiceError(.storeFailed, underlying: RecordLost(), remedy: .signIn), isDefinite: true)

    /// The server refused the grant when another service presented it.
    static let refusedElsewhere = Self(
        error: TokenServiceError(.loadFailed, underlying: FailedElsewhere.refused, remedy: .signIn), isDefinite: true)

    /// Another service has failed, has ended, or is still loading, and the fleet's wait for that isn't over.
    static func elsewhere(_ reason: FailedElsewhere, retryAfter: Duration?) -> Self {
        Self(error: TokenServiceError(.loadFailed, underlying: reason), retryAfter: retryAfter, isDefinite: true)
    }

    /// The shared store failed.
    static func store(_ error: any Error) -> Self {
        // A failed `seal` or `open` isn't permanent: a key may be locked for a while.
        let isPermanent = error is GrantRecordError
        return Self(error: TokenServiceError(.storeFailed, underlying: error), isDefinite: true, isPermanent: isPermanent)
    }
}

/// The program's own `seal` or `open` failed.
struct SealFailure: Error, CustomStringConvertible {
    let underlying: any Error
    let description = "The shared store's record could not be sealed or opened. It was left unchanged: check the key."
}

/// The store has lost a record that it had acknowledged.
struct RecordLost: Error, CustomStringConvertible {
    let description =
        "The shared store's record was removed, or replaced by an older one, so its refresh token may be used up. Sign in again."
}

/// Each of a thousand consecutive swaps found another record than the one before.
struct StoreContention: Error, CustomStringConvertible {
    let description =
        "The shared store's record changed before each of a thousand attempts to replace it. Check which programs write it."
}

/// A swap was refused although the record still has the revision that the swap named; immediate retries might never end.
struct StoreContradiction: Error, CustomStringConvertible {
    let description = "The shared store refused a swap at the current revision. Check its swap(_:ifAt:)."
}

/// Another service that shares the grant keeps this one from loading.
enum FailedElsewhere: Error, CustomStringConvertible {
    case refused, failed, ended, busy
    /// This service's own last request has no answer, so no other service is involved.
    case unanswered

    var description: String {
        switch self {
        case .refused: "The authorization server refused the shared grant when another process presented it."
        case .failed:
            "Another process that shares the grant failed to load a token, and no process asks again before the pause is over."
        case .ended:
            "Another process that shares the grant ended while it loaded a token. Its request may still be on its way, so no "
                + "process asks again until it must have arrived."
        case .unanswered:
            "This process's last request for a token had no answer. It may still be on its way, so no process asks again "
                + "until it must have arrived."
        case .busy:
            "Another process that shares the grant began to load a token, and neither saved it nor failed in the time that "
                + "a load may take."
        }
    }
}
