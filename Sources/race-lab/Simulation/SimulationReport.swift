import RaceGallery

/// What the simulated mode prints: the table, a sentence for each design, and what the rows count.
struct SimulationReport: Encodable, CustomStringConvertible {
    let callers: Int
    let designs: [Findings]

    /// Runs every trial with every design, once in the usual order and then under the explorer.
    init(callers: Int, report: @escaping @Sendable (_ progress: String) -> Void = { _ in }) async throws {
        self.callers = callers
        var designs: [Findings] = []
        for design in Design.all {
            var findings = try await Findings(of: design, callers: callers) { report("\(design.name): \($0)") }
            findings.add(try await Contrast(of: design) { report("\(design.name): \($0), in every order") })
            designs.append(findings)
        }
        self.designs = designs
    }

    var description: String {
        let sections = [
            [title], table.lines, Design.all.map { Self.line($0.title, $0.reason) }, Self.notes,
            Self.counts.map { Self.line($0.name, $0.meaning) }, [Self.lesson.wrapped(indent: 0)],
        ]
        return sections.map { $0.joined(separator: "\n") }.joined(separator: "\n\n")
    }

    private var table: Table {
        Table(
            headings: [[]] + Design.all.map(\.heading),
            rows: Self.counts.map { count in [count.name] + designs.map(count.value) })
    }

    private var title: String {
        "\(callers) caller\(callers == 1 ? " needs" : "s need") an access token at once: what six designs make of it."
    }

    private static let notes = [
        "* For one thread only, and run on one here: what it does on several is undefined. Its schedules are those of several "
            + "threads that take turns.",
        "Time is simulated, so the numbers are the same in every run; all are measured.",
    ].map { $0.wrapped(indent: 2) }

    private static let lesson =
        "To remember: a check, an await and a write are three steps, in an actor too. Share the load, not only the token."

    private static func line(_ name: String, _ text: String) -> String {
        let column = 23
        let padded = name + String(repeating: " ", count: max(column - name.count, 1))
        return (padded + text).wrapped(indent: column)
    }
}
