import Dispatch

/// What the simulated mode prints: the table, a sentence for each row, and what the columns count.
struct SimulationReport: Encodable, CustomStringConvertible {
    let callers: Int
    let designs: [Findings]

    /// Runs every design through every scenario, one after the other, and then under the explorer.
    init(callers: Int, report: @escaping @Sendable (_ progress: String) -> Void = { _ in }) async throws {
        self.callers = callers
        var designs = await withCheckedContinuation { continuation in
            // On a thread of its own: the stage runs tasks there, and the queue is waited for.
            DispatchQueue(label: "race-lab").async {
                let designs = Design.all.map { design in
                    Findings(of: design, callers: callers) { report("\(design.name): \($0)") }
                }
                continuation.resume(returning: designs)
            }
        }
        for (index, design) in Design.all.enumerated() {
            designs[index].add(try await Contrast(of: design) { report("\(design.name): \($0), in every order") })
        }
        self.designs = designs
    }

    var description: String {
        let sections = [
            [title], table.lines, designs.map { Self.line(Self.starred($0), $0.reason) }, [Self.note],
            Self.legend.map { Self.line($0.column, $0.meaning) },
        ]
        return sections.map { $0.joined(separator: "\n") }.joined(separator: "\n\n")
    }

    private var table: Table {
        Table(
            headings: [
                ["design"], ["loads"], ["tokens", "revoked", "in use"], ["answers", "lost"], ["answers", "twice"],
                ["answers", "out of", "order"], ["sign-out", "holds"], ["waiting", "at", "expiry"], ["schedules"],
                ["failing"],
            ],
            rows: designs.map {
                [
                    Self.starred($0), "\($0.loads)", "\($0.tokensRevokedInUse)", "\($0.answersLost)",
                    "\($0.answersRepeated)", "\($0.answersOutOfOrder)", $0.signOutRespected ? "yes" : "no",
                    "\($0.waitingAtExpiry)", "\($0.schedules)", "\($0.failingSchedules)",
                ]
            })
    }

    private var title: String {
        "\(callers) caller\(callers == 1 ? " needs" : "s need") an access token at once: what six designs make of it."
    }

    private static let note = """
        * For one thread only, and run on one here: what it does on several is undefined. Its schedules
          are those of several threads that take turns.
        Time is simulated, so the numbers are the same in every run; all are measured.
        """

    private static let legend = [
        (
            column: "loads",
            meaning: "requests to the authorization server when all callers ask and nothing is cached; 1 is enough"
        ),
        (column: "tokens revoked in use", meaning: "tokens of those loads that callers hold and the server has revoked"),
        (
            column: "answers lost",
            meaning: "callers never answered: the service is released during a load, or one load gets no answer "
                + "(all callers twice)"
        ),
        (column: "answers twice", meaning: "callers answered twice, because the loader called its handler twice"),
        (column: "answers out of order", meaning: "callers answered after somebody who called later"),
        (column: "sign-out holds", meaning: "a load under way at the sign-out gives the next caller no token"),
        (column: "waiting at expiry", meaning: "callers who had to wait for the network while one token followed another"),
        (
            column: "schedules",
            meaning: "orders in which \(Contrast.callers) callers and the answers may run, also with a sign-out, a release, a "
                + "lost or a second answer: all with at most \(Contrast.delays) delays"
        ),
        (
            column: "failing",
            meaning: "schedules with a second load, or a caller who is not answered once and in order, or whose token is "
                + "revoked or from before the sign-out; --show NAME draws one"
        ),
    ]

    private static func starred(_ row: Findings) -> String {
        row.isThreadSafe ? row.design : row.design + "*"
    }

    private static func line(_ name: String, _ text: String) -> String {
        let column = 25
        let padded = name + String(repeating: " ", count: max(column - name.count, 1))
        return (padded + text).wrapped(to: 100, indent: column)
    }
}
