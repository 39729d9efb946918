import Interleavings

/// The museum as a page of Markdown: a table of the bugs and the schedules that show them, then a diagram of each bug.
///
/// It is made by running the exhibits. `Docs/Museum.md` is the table alone; the documentation site has the whole page.
package enum MuseumPage {
    /// A broken service and what its exploration found; `nil`: nothing.
    typealias Finding = (exhibit: Exhibit, failure: ScheduleFailure?)

    /// Runs the exhibits' broken services one after another and writes the page.
    ///
    /// - Parameter exhibits: The exhibits on the page.
    /// - Throws: `CancellationError` if the calling task is cancelled.
    package static func text(of exhibits: [Exhibit] = Exhibit.all) async throws -> String {
        var findings: [Finding] = []
        for exhibit in exhibits { findings.append((exhibit, try await failure(of: exhibit))) }
        // Nothing between the table and the heading: what stands before the heading is a file.
        let table = ([head] + findings.map(row) + [diagramsHeading]).joined(separator: "\n")
        return ([introduction, table] + findings.compactMap(section)).joined(separator: "\n\n")
    }

    /// The heading that ends the part of the page in `Docs/Museum.md`.
    package static let diagramsHeading = "## The diagrams"

    private static func failure(of exhibit: Exhibit) async throws -> ScheduleFailure? {
        do {
            return try await explore(
                exhibit.strategy, time: exhibit.time, granularity: exhibit.granularity, exhibit.broken
            ).firstFailure
        } catch let failure as ScheduleFailure {
            return failure
        }
    }

    private static var build: String {
        #if DEBUG
        "debug"
        #else
        "release"
        #endif
    }

    private static let introduction = """
        # The museum of races

        Races that other libraries shipped. Each is a small broken service here, with the schedule that shows its bug.

        Each bug has a file in `Sources/RaceGallery/Museum`, with the broken service and a scenario. The comment on the service
        tells how the bug happens, and where it sits in the code. The same scenario passes on `TokenService`, or on its service
        for callbacks, under every schedule that the tests try.

        We ran the projects marked [R], and saw the bug. We read the source of those marked [S]. The other bugs are described in
        the projects' issues and pull requests. A schedule fits one build configuration, and these fit a \(build) build.

        `swift run race-lab --museum` prints this table and a diagram of each bug, and the documentation site has both. Don't
        edit `Docs/Museum.md`. This command writes it, and a test compares it with the exhibits:
        `swift run race-lab --museum | sed '/^\(diagramsHeading)/,$d' > Docs/Museum.md`.
        """

    private static let head = """
        | | Bug | Where it shipped | Found at schedule | Strategy | Shortest schedule |
        |---|---|---|---|---|---|
        """

    private static func row(_ finding: Finding) -> String {
        let (exhibit, failure) = finding
        let found = failure.map { ["\($0.number)", $0.strategy, name(of: $0.schedule)] } ?? ["–", "–", "–"]
        return "| " + (["\(exhibit.number)", exhibit.lesson, exhibit.source] + found).joined(separator: " | ") + " |"
    }

    private static func name(of schedule: String) -> String {
        schedule.isEmpty ? "none: the usual order" : "`\(schedule)`"
    }

    private static func section(_ finding: Finding) -> String? {
        guard let failure = finding.failure else { return nil }
        return """
            ### \(finding.exhibit.number). \(finding.exhibit.lesson)

            ```text
            \(shortened(failure.diagram))
            ```
            """
    }

    /// The most lines of a diagram; longer ones repeat themselves.
    private static let longest = 120

    private static func shortened(_ diagram: String) -> String {
        let lines = diagram.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count > longest else { return diagram }
        let left = longest / 3
        let kept = lines.prefix(left) + ["… \(lines.count - 2 * left) lines …"] + lines.suffix(left)
        return kept.joined(separator: "\n")
    }
}
