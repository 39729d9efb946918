import RaceGallery

/// The findings of the simulated mode, and its output: the designs as they finish, the meaning of the rows, and the table.
struct SimulationReport: Encodable {
    let callers: Int
    let designs: [Findings]

    /// Runs every trial with every design, once in the usual order and then under the explorer.
    ///
    /// - Parameters:
    ///   - callers: How many callers ask in the usual order.
    ///   - report: Called with the next activity, to show progress.
    ///   - print: Called with each part of the text as soon as it is known.
    init(
        callers: Int, report: (_ progress: String) -> Void = { _ in }, print: (_ text: String) -> Void = { _ in }
    ) async throws {
        self.callers = callers
        print(Self.opening(callers: callers) + "\n")
        var designs: [Findings] = []
        for design in Design.all {
            var findings = try await Findings(of: design, callers: callers) { report("\(design.name): \($0)") }
            findings.add(try await Contrast(of: design) { report("\(design.name): \($0), in every order") })
            designs.append(findings)
            print(Self.line(design.title, design.reason))
        }
        self.designs = designs
        print("\n" + sections.joined(separator: "\n\n"))
    }

    private static func opening(callers: Int) -> String {
        let question = "\(callers) caller\(callers == 1 ? " needs" : "s need") an access token at once."
        let comparison =
            "This is how six designs of a token service handle it, on a simulated server: first in the usual order, then with "
            + "\(Contrast.callers) callers in hundreds of other orders."
        return "\(question) \(comparison)".wrapped(indent: 0)
    }

    /// The meaning of the rows, then the table, so that the table and the conclusion are still visible when the lab has finished.
    private var sections: [String] {
        let legend = Self.counts.map { Self.line($0.name, $0.meaning) }.joined(separator: "\n")
        return [legend, table.lines.joined(separator: "\n"), Self.notes.joined(separator: "\n"), Self.lesson]
    }

    /// The table.
    ///
    /// `TokenService` and the naive actor come first, where they are visible even on a small screen.
    var table: Table {
        func ordered<Column>(_ columns: [Column]) -> [Column] { columns.suffix(1) + columns[3..<5] + columns.prefix(3) }
        return Table(
            headings: [[]] + ordered(Design.all.map(\.heading)),
            rows: Self.counts.map { count in [count.name] + ordered(designs.map(count.value)) })
    }

    private static var notes: [String] {
        [
            ("Lower is better, except for “sign-out holds”, “answered if blocking” and “schedules”, the orders that were tried. Time "
                + "is simulated: the numbers are the same in every run.").wrapped(indent: 0),
            ("* For one thread only, and run on one here: its behaviour on several is undefined. Its schedules are those of several "
                + "threads that take turns.").wrapped(indent: 2),
        ]
    }

    private static var lesson: String {
        "To remember: a check, an await and a write are three steps, even in an actor. Share the load, not only the token."
            .wrapped(indent: 0)
    }

    private static func line(_ name: String, _ text: String) -> String {
        // In a narrow window a text has the whole width.
        let column = Console.columns < 60 ? 2 : 23
        let padded = name + String(repeating: " ", count: max(column - name.count, 1))
        return (padded + text).wrapped(indent: column)
    }
}
