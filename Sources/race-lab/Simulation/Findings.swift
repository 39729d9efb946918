import RaceGallery

/// A column of the table: the measurements of one design; its properties are named as the table's rows.
struct Findings: Encodable, Equatable {
    let design: String
    let callers: Int
    let loads: Int
    let tokensRevokedInUse: Int
    let answersLost: Int
    let answersTwice: Int
    let answersOutOfOrder: Int
    let signOutHolds: Bool
    let waitingAtExpiry: Int
    let answeredIfBlocking: Int
    private(set) var schedules = 0
    private(set) var failing = 0
    let isThreadSafe: Bool
    let reason: String

    /// Runs all trials with a design once, in the usual order.
    ///
    /// - Parameter report: Called with the next trial, to show progress.
    init(of design: Design, callers: Int, report: (_ trial: String) -> Void = { _ in }) async throws {
        self.design = design.name
        self.callers = callers
        isThreadSafe = design.isThreadSafe
        reason = design.reason
        report(Trial.rush.name)
        (loads, tokensRevokedInUse, answersOutOfOrder) = try await Trial.rush.count(design, callers: callers) { run in
            (run.loads, run.tokensRevokedInUse, run.overtaken)
        }
        report(Trial.release.name)
        let lostAtRelease = try await Trial.release.count(design, callers: callers) { $0.unanswered }
        report(Trial.silence.name)
        // Half of the callers ask a minute later: after the time limit of 30 s, when the server has recovered.
        let lostInSilence = try await Trial.silence.count(
            design, callers: callers - callers / 2, latecomers: callers / 2
        ) { $0.unanswered }
        answersLost = lostAtRelease + lostInSilence
        report(Trial.echo.name)
        answersTwice = try await Trial.echo.count(design, callers: callers) { $0.answeredTwice }
        report(Trial.signOut.name)
        signOutHolds = try await Trial.signOut.count(design, callers: 1) { $0.signOutHolds }
        report("the token expires")
        waitingAtExpiry = Trial.waitingAtExpiry(design, callers: callers)
        report("all callers block a thread")
        answeredIfBlocking = Trial.answeredIfBlocking(design, callers: callers)
    }

    /// Adds what the explorer found.
    mutating func add(_ contrast: Contrast) {
        schedules = contrast.schedules
        failing = contrast.failures
    }
}
