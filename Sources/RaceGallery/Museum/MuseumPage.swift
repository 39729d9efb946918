import Interleavings

/// The museum as a page of Markdown: a table of what was found and how, and a diagram of each bug.
///
/// Made by running the exhibits, so it says what this build finds.
public enum MuseumPage {
    /// A broken service and what its exploration found; `nil` where the bug cannot be made under the explorer.
    typealias Finding = (exhibit: Exhibit, failure: ScheduleFailure?)

    /// Runs the exhibits' broken services one after the other and writes the page.
    ///
    /// - Parameter exhibits: Which ones.
    /// - Throws: What an exploration throws besides a failure that it found: `CancellationError`.
    public static func text(of exhibits: [Exhibit] = Exhibit.all) async throws -> String {
        var findings: [Finding] = []
        for exhibit in exhibits { findings.append((exhibit, try await failure(of: exhibit))) }
        let table = ([head] + findings.map(row)).joined(separator: "\n")
        return ([introduction, table] + findings.compactMap(section)).joined(separator: "\n\n")
    }

    private static func failure(of exhibit: Exhibit) async throws -> ScheduleFailure? {
        guard let broken = exhibit.broken else { return nil }
        do {
            return try await explore(exhibit.strategy, time: exhibit.time, granularity: exhibit.granularity, broken).firstFailure
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

        Races that shipped. Each is a small broken service in `Sources/RaceGallery/Museum`, whose comment tells how it
        happens and where it sits in the code, and a scenario that catches it. The same scenario on `TokenService`, or on its
        shim for callbacks, holds under every schedule that the tests try.

        Do not edit: `swift run race-lab --museum > Docs/Museum.md` writes this page, and a test holds it to what the
        exhibits say. Schedules fit one build configuration; these are a \(build) build's. [R]: reproduced by running the
        project; [S]: read in its source; the others are in issues and pull requests.
        """

    private static let head = """
        | | Bug | Where it shipped | Found at schedule | Strategy | Shortest schedule |
        |---|---|---|---|---|---|
        """

    private static func row(_ finding: Finding) -> String {
        let (exhibit, failure) = finding
        let found = failure.map { ["\($0.number)", $0.strategy, name(of: $0.schedule)] } ?? ["–", "–", "–"]
        let lesson = "[\(exhibit.lesson)](#\(anchor(exhibit)))"
        return "| " + (["\(exhibit.number)", lesson, exhibit.source] + found).joined(separator: " | ") + " |"
    }

    private static func name(of schedule: Schedule) -> String {
        schedule.choices.isEmpty ? "none: the first choice each time" : "`\(schedule)`"
    }

    private static func anchor(_ exhibit: Exhibit) -> String { "museum-\(exhibit.number)" }

    private static func section(_ finding: Finding) -> String? {
        guard let failure = finding.failure else { return nil }
        return """
            <a id="\(anchor(finding.exhibit))"></a>
            <details>
            <summary>\(finding.exhibit.number). \(finding.exhibit.lesson)</summary>

            ```text
            \(shortened(failure.diagram))
            ```

            </details>
            """
    }

    /// How many lines a diagram has at most: what is longer says the same over and over.
    private static let longest = 120

    private static func shortened(_ diagram: String) -> String {
        let lines = diagram.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count > longest else { return diagram }
        let left = longest / 3
        let kept = lines.prefix(left) + ["… \(lines.count - 2 * left) lines …"] + lines.suffix(left)
        return kept.joined(separator: "\n")
    }
}
