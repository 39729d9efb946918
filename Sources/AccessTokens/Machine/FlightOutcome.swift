import TokenServiceConcurrency

/// How a flight has ended, or what its load has brought.
package enum FlightOutcome: Sendable, Hashable {
    /// The loader's token, which is saved before any caller gets it.
    case loaded(AccessToken)
    /// The token that the flight held is saved, or can't be.
    case saved(FlightFailure?)
    /// The store has the token of an earlier run or of another service, which a load may have to replace; the age counts from the
    /// start of its load.
    case found(AccessToken, age: Duration, isOfOther: Bool)
    /// A token that is in the shared record, and how long ago its load began.
    case token(AccessToken, age: Duration, isAdopted: Bool)
    case failed(FlightFailure)
    /// The store hasn't responded in time; it may still do so.
    case overdue
    /// There is no token, and none was loaded: callers need a load of their own.
    case gaveUp
    /// A check found a grant newer than any that the service has tried.
    case newGrant
    /// Another service has signed out; `isOfSession`: whether the record had shown a session before.
    case signedOut(isOfSession: Bool)

    /// The grant that the server has issued to the flight's load.
    var issued: AccessToken? {
        switch self {
        case .loaded(let token): token
        case .failed(let failure): failure.salvaged
        default: nil
        }
    }
}

/// Why a load has failed, or an operation of a store.
package struct FlightFailure: Sendable, Hashable {
    /// Compared by its code and remedy, since its cause can't be compared.
    private struct Compared: Sendable, Hashable {
        let error: TokenServiceError

        static func == (a: Self, b: Self) -> Bool { (a.error.code, a.error.remedy) == (b.error.code, b.error.remedy) }

        func hash(into hasher: inout Hasher) {
            hasher.combine(error.code)
            hasher.combine(error.remedy)
        }
    }

    private let compared: Compared
    package var error: TokenServiceError { compared.error }
    /// How long the server or the store asked to wait.
    package var retryAfter: Duration?
    /// A new grant that came with the failure.
    package var salvaged: AccessToken?
    /// Whether the server's response is known, or the refresh token was certainly not spent.
    package let isDefinite: Bool
    /// Whether the load was given up before anything was sent, so that it isn't a failure of the server.
    package let isUnsent: Bool
    /// Whether a store has done what was asked all the same: only a removal's read has failed, or a save has found another
    /// service's token.
    var tookEffect = false

    package init(
        error: TokenServiceError, retryAfter: Duration? = nil, salvaged: AccessToken? = nil, isDefinite: Bool = true,
        isUnsent: Bool = false
    ) {
        compared = Compared(error: error)
        self.retryAfter = retryAfter
        self.salvaged = salvaged
        self.isDefinite = isDefinite
        self.isUnsent = isUnsent
    }

    /// Wraps what a loader or a store threw; unless that shows otherwise, the request may still be under way.
    package init(wrapping error: any Error, as code: TokenServiceError.Code = .loadFailed) {
        let cause = (error as? SalvagedGrant)?.reason ?? error
        let failure = cause as? any TokenLoadFailure
        // Another service's reset ends when its user signs in again, which this service isn't told about. So it counts as
        // transient.
        let isForeignReset = (cause as? TokenServiceError)?.code == .reset
        let remedy = isForeignReset ? .retry : failure?.remedy ?? .retry
        self.init(
            error: TokenServiceError(code, underlying: cause, remedy: remedy), retryAfter: failure?.retryAfter,
            salvaged: (error as? SalvagedGrant)?.grant,
            isDefinite: !((error as? any TokenLoadFailure)?.mayBeUnderWay ?? true), isUnsent: error is NotSent)
    }
}
