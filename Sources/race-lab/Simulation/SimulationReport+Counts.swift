extension SimulationReport {
    /// A row of the table: one count for each design.
    struct Count: Sendable {
        let name: String
        let meaning: String
        let value: @Sendable (Findings) -> String
    }

    static let counts = [
        Count(
            name: "loads",
            meaning: "requests to the authorization server when all callers ask and nothing is cached; 1 is enough"
        ) { "\($0.loads)" },
        Count(
            name: "tokens revoked in use", meaning: "tokens of those loads that callers hold and the server has revoked"
        ) { "\($0.tokensRevokedInUse)" },
        Count(
            name: "answers lost",
            meaning: "callers never answered: the service is released during a load, or one load gets no answer "
                + "(all callers twice)"
        ) { "\($0.answersLost)" },
        Count(
            name: "answers twice", meaning: "callers answered twice, because the loader called its handler twice"
        ) { "\($0.answersTwice)" },
        Count(
            name: "answers out of order", meaning: "callers answered after one who called later"
        ) { "\($0.answersOutOfOrder)" },
        Count(
            name: "sign-out holds", meaning: "a load under way at the sign-out gives the next caller no token"
        ) { $0.signOutHolds ? "yes" : "no" },
        Count(
            name: "waiting at expiry",
            meaning: "callers who had to wait for the network while one token followed another"
        ) { "\($0.waitingAtExpiry)" },
        Count(
            name: "answered if blocking",
            meaning: "callers who get a token although they block every thread of the pool; TokenService's call "
                + "AccessTokenService, the naive actor's need a task"
        ) { "\($0.answeredIfBlocking)" },
        Count(
            name: "schedules",
            meaning: "orders in which \(Contrast.callers) callers and the answers may run, also with a sign-out, a release, a "
                + "lost or a second answer: all with at most \(Contrast.delays) delays"
        ) { "\($0.schedules)" },
        Count(
            name: "failing",
            meaning: "schedules with a second load, or a caller who is not answered once and in order, or whose token is "
                + "revoked or from before the sign-out; --show NAME draws one"
        ) { "\($0.failing)" },
    ]
}
