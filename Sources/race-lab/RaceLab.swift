import Foundation
import RaceGallery

/// The lab: six designs on a simulated server, or three on a real one.
@main struct RaceLab {
    /// `EX_USAGE` of `sysexits.h`.
    private static let usageStatus: Int32 = 64

    static func main() async {
        do {
            let arguments = Array(CommandLine.arguments.dropFirst())
            let options = try Options(parsing: arguments)
            try await Console.$columns.withValue(Console.width(of: STDOUT_FILENO)) { try await run(options) }
            try Console.finish()
        } catch let error as UsageError {
            end("\(error) (--help shows all options)", status: usageStatus)
        } catch {
            end("\(error)", status: 1)
        }
    }

    private static func run(_ options: Options) async throws {
        switch options.mode {
        case .help: Console.print(Help.text)
        case .museum: Console.print(try await MuseumPage.text())
        case .contrast(let callers): try await simulate(callers, options)
        case .show(let name, let page): try await show(name, page: page)
        case .server(let server): try await connect(to: server, options)
        }
    }

    private static func simulate(_ callers: Int, _ options: Options) async throws {
        let report = try await SimulationReport(callers: callers, report: Console.progress) { text in
            Console.progress("")
            if !options.isJSON { Console.print(text) }
        }
        if options.isJSON { try Console.print(json: report) }
    }

    private static func show(_ name: String, page path: String?) async throws {
        guard let design = Design.all.first(where: { $0.name == name }) else { return }
        let exhibition = try await Exhibition(of: design, report: Console.progress)
        Console.progress("")
        Console.print(exhibition.description)
        guard let path else { return }
        guard let page = exhibition.page else { return Console.print("\nNo page: no schedule fails.") }
        do {
            try Data(page.utf8).write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw OutputError(page: path, error)
        }
        Console.print("\nA page to walk through: \(path)")
    }

    private static func connect(to server: Options.Server, _ options: Options) async throws {
        let print: @Sendable (String) -> Void = { if !options.isJSON { Console.print($0) } }
        let loader = try server.loader(in: ProcessInfo.processInfo.environment)
        var summary = await RealRun.ours(with: loader, server, print: print)
        if summary.tokens > 0 { print("\n\(summary)") }
        if summary.error == nil {
            let others = RealRun.others(with: loader)
            print("\n" + RealRun.announcement)
            for other in others {
                Console.progress(other.name)
                summary.designs.append(await other.measure(server))
            }
            Console.progress("")
            print("\n\(summary.comparison)")
        }
        if options.isJSON { try Console.print(json: summary) }
        if let reason = summary.error { end(reason, status: 1) }
    }

    private static func end(_ reason: String, status: Int32) -> Never {
        Console.note(note(of: reason))
        exit(status)
    }

    /// An error's text, wrapped by the lab, without a server's own line breaks.
    static func note(of reason: String) -> String {
        "race-lab: \(reason.split(whereSeparator: \.isNewline).joined(separator: " "))".wrapped(indent: 2)
    }
}
