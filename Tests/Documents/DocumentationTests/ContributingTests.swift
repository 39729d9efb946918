import Foundation
import Testing

/// Contributors and the workflow name the stages of `.ci/run`.
@Suite("The page for contributors")
struct ContributingTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
    }

    /// The names in the table of stages, and whether each stage is daily.
    private func stages() throws -> [(name: String, isDaily: Bool)] {
        let table = try #require(try text(".ci/run").firstMatch(of: /(?s)\nstages='\n(.*?)\n'\n/)).1
        return table.matches(of: #/(?m)^([a-z0-9-]+) +(daily|nightly) +\d+ /#).map { (String($0.1), $0.2 == "daily") }
    }

    @Test func `the workflow runs every stage, and the everyday stages for each change`() throws {
        let lists = try text(".github/workflows/ci.yml").matches(of: /stage: \[(.*?)\]/).map {
            $0.1.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        let stages = try stages()
        #expect(lists == [stages.filter(\.isDaily).map(\.name), stages.filter { !$0.isDaily }.map(\.name)])
    }

    @Test func `every stage that a page names exists, with a function that runs it`() throws {
        let (script, names) = (try text(".ci/run"), try stages().map(\.name))
        #expect(names.count > 10)
        for name in names {
            #expect(script.contains("\nstage_\(name.replacing("-", with: "_"))() {"), "\(name) has no function")
        }
        for page in LinkTests.pages {
            for command in try text(page).matches(of: /\.ci\/run ([a-z][a-z0-9-]*)/) where command.1 != "all" {
                #expect(names.contains(String(command.1)), "\(page): there is no stage \(command.1)")
            }
        }
    }
}
