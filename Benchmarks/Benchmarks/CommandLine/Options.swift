/// The command line's options.
struct Options: Sendable {
    /// The names of the suites to run contain one of these; none: all.
    var filters: [String] = []
    var isQuick = false
    var printsJSON = false
    var checks = false
    var writesDocs = false
    /// A file with what `--json` printed, to draw the plots from.
    var redrawn: String?
    var asksForHelp = false

    static let help = """
        Measures the token service and its baselines in one run.

          --filter NAME   only suites with NAME in their names; may be given again. They are:
                          \(Suite.all.map(\.name).joined(separator: ", "))
          --quick         fewer rounds and smaller crowds
          --json          the figures as JSON instead of tables
          --check         end with status 1 if a ratio is more than a quarter above its recorded bound, four times
          --write-docs    renew the tables and plots of Docs/Performance.md; run it in the package's directory
          --redraw FILE   draw the plots of Docs/Performance.md again, from what --json printed; measures nothing
          --help          this text
        """

    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    init(_ arguments: [String]) throws {
        var arguments = arguments[...]
        while let argument = arguments.popFirst() {
            switch argument {
            case "--filter":
                guard let name = arguments.popFirst() else { throw Problem(description: "--filter needs a name.") }
                guard Suite.all.contains(where: { $0.name.contains(name) }) else {
                    throw Problem(description: "No suite has '\(name)' in its name; --help lists the suites.")
                }
                filters.append(name)
            case "--redraw":
                guard let file = arguments.popFirst() else { throw Problem(description: "--redraw needs a file.") }
                redrawn = file
            case "--quick": isQuick = true
            case "--json": printsJSON = true
            case "--check": checks = true
            case "--write-docs": writesDocs = true
            case "--help", "-h": asksForHelp = true
            default: throw Problem(description: "Unknown argument '\(argument)'; --help lists the options.")
            }
        }
        if writesDocs, isQuick || !filters.isEmpty {
            throw Problem(description: "--write-docs needs a whole run, without --quick and --filter.")
        }
    }

    var suites: [Suite] {
        guard !filters.isEmpty else { return Suite.all }
        // A whole name means that suite alone.
        let names = Set(Suite.all.map(\.name))
        return Suite.all.filter { suite in
            filters.contains { names.contains($0) ? suite.name == $0 : suite.name.contains($0) }
        }
    }
}
