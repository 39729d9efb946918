import Foundation
import RaceGallery

/// The lab: six designs on a simulated server, one service on a real one, services of many keys, or processes with one grant.
@main struct RaceLab {
    /// What `sysexits.h` calls `EX_USAGE`.
    private static let usageStatus: Int32 = 64

    static func main() async {
        do {
            let arguments = Array(CommandLine.arguments.dropFirst())
            if arguments.first == FleetWorker.flag { await (try FleetWorker(arguments)).run() }
            if arguments.first == SwapRate.flag { return try await SwapRate.work(arguments) }
            let options = try Options(parsing: arguments)
            if options.wantsHelp {
                Console.print(Help.text)
            } else if options.wantsMuseum {
                Console.print(try await MuseumPage.text())
            } else if options.wantsSharing {
                try await contrastSharing(options)
            } else if let fleet = options.fleet {
                try await share(fleet, options)
            } else if let keys = options.keys {
                try await visit(keys, options)
            } else if let server = options.server {
                try await connect(to: server, options)
            } else if let design = Design.all.first(where: { $0.name == options.show }) {
                try await show(design, page: options.page)
            } else {
                try await simulate(options)
            }
            try Console.finish()
        } catch let error as UsageError {
            end("\(error) (--help shows all options)", status: usageStatus)
        } catch {
            end("\(error)", status: 1)
        }
    }

    private static func simulate(_ options: Options) async throws {
        let report = try await SimulationReport(callers: options.callers, report: Console.progress) { text in
            Console.progress("")
            if !options.isJSON { Console.print(text) }
        }
        if options.isJSON { try Console.print(json: report) }
    }

    private static func show(_ design: Design, page path: String?) async throws {
        let exhibition = try await Exhibition(of: design, report: Console.progress)
        Console.progress("")
        Console.print(exhibition.description)
        guard let path else { return }
        guard let page = exhibition.page else { return Console.print("\nNo page: no schedule fails.") }
        try Data(page.utf8).write(to: URL(filePath: path), options: .atomic)
        Console.print("\nA page to walk through: \(path)")
    }

    private static func connect(to server: Options.Server, _ options: Options) async throws {
        let credentials = try Credentials(in: ProcessInfo.processInfo.environment, hasStore: server.store != nil)
        let print: @Sendable (String) -> Void = { if !options.isJSON { Console.print($0) } }
        let summary = try await RealRun.measure(expiries: server.expiries, print: print) {
            switch credentials {
            case .client(let secret):
                RealRun(loader: try server.loader(secret: secret), callers: options.callers, seconds: server.seconds)
            case .user(let refreshToken, let secret):
                RealRun(
                    loader: try server.loader(ofUserWith: secret), store: try await server.store(seed: refreshToken),
                    keepsGrant: server.store != nil, callers: options.callers, seconds: server.seconds)
            }
        }
        if options.isJSON {
            try Console.print(json: summary)
        } else if summary.tokens > 0 {
            Console.print("\n\(summary)")
        }
        if let reason = summary.error { end(reason, status: 1) }
    }

    private static func visit(_ keys: Options.Keys, _ options: Options) async throws {
        let progress: @Sendable (String) -> Void = { Console.progress($0) }
        let credentials = try options.server.map {
            try Credentials(in: ProcessInfo.processInfo.environment, hasStore: $0.store != nil)
        }
        if !options.isJSON {
            let isSimulated = options.server == nil
            Console.print(keys.opening(callers: options.callers, isSimulated: isSimulated) + "\n")
        }
        let summary =
            if let server = options.server, let credentials {
                try await KeyRun.connect(to: server, with: credentials, keys, callers: options.callers, report: progress)
            } else {
                await KeyRun.simulate(keys, callers: options.callers, report: progress)
            }
        Console.progress("")
        if options.isJSON { try Console.print(json: summary) } else { Console.print("\(summary)") }
        if let reason = summary.error { end(reason, status: 1) }
    }

    private static func contrastSharing(_ options: Options) async throws {
        let contrast = try await SharingContrast(report: Console.step)
        Console.progress("")
        if options.isJSON { try Console.print(json: contrast.rows) } else { Console.print("\(contrast)") }
    }

    private static func share(_ fleet: Options.Fleet, _ options: Options) async throws {
        if fleet.onlySwaps {
            let rate = try await SwapRate.measure(fleet)
            if options.isJSON { try Console.print(json: rate) } else { Console.print("\(rate)") }
            return
        }
        let print: @Sendable (String) -> Void = { if !options.isJSON { Console.print($0) } }
        print(fleet.opening + "\n")
        let summary = try await FleetRun.measure(fleet, print: print)
        if options.isJSON { try Console.print(json: summary) } else { Console.print("\n\(summary)") }
        if let reason = summary.error { end(reason, status: 1) }
    }

    private static func end(_ reason: String, status: Int32) -> Never {
        Console.note(note(of: reason))
        exit(status)
    }

    /// What is said of an error: lines of the lab's own, whatever lines a server's words have.
    static func note(of reason: String) -> String {
        "race-lab: \(reason.split(whereSeparator: \.isNewline).joined(separator: " "))".wrapped(indent: 2)
    }
}
