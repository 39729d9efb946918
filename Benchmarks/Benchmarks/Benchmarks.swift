import Foundation

/// Measures the token service and its baselines in one run.
@main enum Benchmarks {
    static func main() async {
        do {
            let options = try Options(Array(CommandLine.arguments.dropFirst()))
            if options.asksForHelp { return print(Options.help) }
            if let file = options.redrawn { return try redraw(from: file) }
            try await run(options)
        } catch let problem as Options.Problem {
            Terminal.say(problem.description)
            exit(64)
        } catch {
            Terminal.say("\(error)")
            exit(1)
        }
    }

    private static func redraw(from file: String) throws {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        try Page.redraw(from: try decoder.decode(Run.self, from: Data(contentsOf: URL(filePath: file))).tables)
    }

    private static func run(_ options: Options) async throws {
        #if DEBUG
        Terminal.say("The figures of a debug build mean nothing. Use: swift run -c release Benchmarks")
        #endif
        let effort = options.isQuick ? Effort.quick : .full
        let start = Date()
        var tables: [Table] = []
        var problems: [String] = []
        for (number, suite) in options.suites.enumerated() {
            Terminal.show("\(number + 1) of \(options.suites.count): \(suite.name)")
            var measured = try await suite.run(effort)
            var violations = options.checks ? Bound.violations(in: measured) : []
            // The machine may have been slow, and not the code.
            for _ in 2...Bound.tries where !violations.isEmpty {
                measured = try await suite.run(effort)
                violations = Bound.violations(in: measured)
            }
            Terminal.show("")
            problems += violations
            tables += measured
            if !options.printsJSON { measured.forEach { print($0.text) } }
        }
        let machine = Machine.here(at: start)
        if options.printsJSON {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            encoder.dateEncodingStrategy = .iso8601
            print(String(decoding: try encoder.encode(Run(machine: machine, tables: tables)), as: UTF8.self))
        } else {
            print(machine.description)
        }
        if options.writesDocs { try Page.renew(with: tables, machine: machine) }
        guard problems.isEmpty else {
            problems.forEach { Terminal.say("Worse than it was: \($0)") }
            exit(1)
        }
    }
}

/// The JSON output of a run.
private struct Run: Codable {
    let machine: Machine
    let tables: [Table]
}
