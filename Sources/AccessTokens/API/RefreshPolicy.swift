/// When tokens are refreshed, how long loads may take, and how failures are paced.
///
/// The defaults suit the common authorization servers; each is documented with its reason. The formulas, with worked tables, are
/// beside the functions in `CachedToken.swift`.
public struct RefreshPolicy: Sendable, Hashable {
    package let loadTimeout: Duration
    package let maximumLeeway: Duration
    package let maximumRefreshWindow: Duration

    /// Creates a policy; values out of range are clamped.
    ///
    /// - Parameters:
    ///   - loadTimeout: How long a load may take before its callers get a time-out error; 30 s, at least 1 ms.
    ///
    ///     30 s is longer than any healthy token endpoint needs, and shorter than a person's patience. Give the loader's transport
    ///     its own, shorter limit, so that a slow exchange ends as a failure instead of being given up.
    ///   - maximumLeeway: How long before its real expiry a token stops being handed out, at most; 60 s.
    ///
    ///     Within this time the token is handed out only after a transient failure of a load, and only for nine tenths of the time.
    ///     60 s covers a slow request and a server clock that is a little ahead; Spring and Duende use the same. Short tokens get a
    ///     tenth of their lifetime instead: a leeway longer than the lifetime would cause load after load.
    ///   - maximumRefreshWindow: The longest time before hard expiry at which callers start a refresh ahead; 15 min, zero for none.
    ///
    ///     15 min is what AWS's clients use for one-hour tokens: it leaves time for several attempts and wastes few tokens. Short
    ///     tokens get a quarter of their lifetime instead.
    ///
    ///     With zero, a server's own suggestion (`refresh_in`) starts none either. That suits programs that end soon after their
    ///     last call, such as command-line tools. Loads then start only when a caller needs a token, with one exception: while the
    ///     server fails and the service hands out a token inside its leeway, attempts run in the background.
    ///     ``TokenService/drain(within:)`` waits for those.
    public init(
        loadTimeout: Duration = .seconds(30),
        maximumLeeway: Duration = .seconds(60),
        maximumRefreshWindow: Duration = .seconds(15 * 60)
    ) {
        self.loadTimeout = min(max(loadTimeout, .milliseconds(1)), Self.longestLifetime)
        self.maximumLeeway = max(maximumLeeway, .zero)
        self.maximumRefreshWindow = max(maximumRefreshWindow, .zero)
    }

    /// The longest pause between failing loads; 60 s, so that a service recovers within a minute of its server.
    package static let longestPause = Duration.seconds(60)

    /// The longest `Retry-After` that is honoured; 3,600 s, MSAL's limit: a larger one is more likely a mistake.
    package static let retryAfterLimit = Duration.seconds(3600)

    /// The longest pause between failing refreshes ahead; 300 s, since the token is still good.
    package static let longestRefreshPause = Duration.seconds(300)

    /// How many times in a row a server may refuse without saying why before the grant counts as refused; 3.
    ///
    /// But not before ``unclearRefusalPeriod`` has passed: a valid session survives a bad minute of the server, and the user of an
    /// invalid one is told within a quarter of an hour.
    static let unclearRefusalLimit = 3

    /// How long a server must refuse without saying why before the grant counts as refused; 600 s, longer than a deployment.
    ///
    /// A count alone would depend on how many processes ask: ten of them are refused three times within a second.
    static let unclearRefusalPeriod = Duration.seconds(600)

    /// How long the service waits for an operation of a ``TokenStore``; 5 s.
    ///
    /// A disk or a keychain that takes longer isn't working properly, and callers shouldn't wait for it.
    package static let storeTimeout = Duration.seconds(5)
    /// The shortest time between two reads of a shared store by a service that is backing off; the same as for one that waits for
    /// a change.
    package static let checkPause = Duration.seconds(1)

    /// The longest lifetime that is counted; ten years, since longer ones only risk overflow.
    package static let longestLifetime = Duration.seconds(10 * 365 * 24 * 3600)

    /// The shortest pause between refreshes ahead; 30 s, for long tokens: see `CachedToken.swift`.
    static let shortestRefreshPause = Duration.seconds(30)

    /// The time on the service's clock from which a refresh ahead may spend a refresh token; 60 s.
    ///
    /// The default clock starts with the program's first service. So a tool that ends sooner, and awaits its calls, never ends in
    /// the middle of such a load.
    package static let earliestSpending = Duration.seconds(60)

    /// How many invalidated tokens a service remembers; 8, more than ``invalidationLimit``.
    static let rememberedRejections = 8

    /// How many loads invalidations may cause within ``invalidationPeriod``; 5, Alamofire's limit.
    package static let invalidationLimit = 5

    /// The period of ``invalidationLimit``; 30 s.
    static let invalidationPeriod = Duration.seconds(30)

    /// How many given-up loads may still run beside the current one; 2: a hanging server must not accumulate requests.
    static let abandonedFlights = 2

    /// How many times ``loadTimeout`` pass before a given-up load is forgotten and no longer blocks others; 4, two minutes by
    /// default.
    ///
    /// The callback of such a load was lost, or its transport has no time limit. Until then no non-repeatable load starts beside
    /// it, and at most two repeatable ones do. The exception is a load of a grant that processes share: another starts only after
    /// it has ended, or after a fence.
    ///
    /// An operation of a ``TokenStore`` is forgotten 95 s after it began: three times ``loadTimeout`` after its limit of 5 s.
    package static let timeoutsUntilForgotten = 4

    /// The part of a token's leeway that stays unused when the token is handed out after a failed load, as a divisor.
    ///
    /// A tenth, 6 s of a minute: enough for a request to arrive.
    static let unusedPartOfLeeway = 10

    /// The largest share by which jitter shortens a refresh window (a tenth) or lengthens a pause (a quarter).
    ///
    /// Enough to spread clients that started together.
    static let windowJitter = 0.1
    static let pauseJitter = 0.25
}
