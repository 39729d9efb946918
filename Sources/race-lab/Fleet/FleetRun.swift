import AccessTokens
import AccessTokensSharedFiles
import AccessTokensSharing
import Foundation

/// Processes that share a grant, the server that they ask, and what is seen of them.
actor FleetRun {
    private enum Happening: Sendable {
        case event(FleetWatch.Event)
        case kill
        case over
    }

    private let options: Options.Fleet
    private let store: any SharedTokenStore
    private let server: FleetServer
    private let owner: TokenService
    private let happenings: AsyncStream<Happening>
    private let happen: AsyncStream<Happening>.Continuation
    private let clock = ContinuousClock()
    private let print: @Sendable (String) -> Void
    private var watch = FleetWatch()
    private var running: [Int32: Process] = [:]

    private init(_ options: Options.Fleet, print: @escaping @Sendable (String) -> Void) throws {
        let (happenings, happen) = AsyncStream.makeStream(of: Happening.self)
        (self.happenings, self.happen, self.options, self.print) = (happenings, happen, options, print)
        store = SharedFileTokenStore(path: options.store)
        server = try FleetServer { token, process, answer in
            happen.yield(.event(.exchanged(token: token, process, answer)))
        }
        // Signs in, and never loads.
        owner = TokenService(
            policy: FleetGrant.policy, sharedStore: store, sharing: FleetGrant.sharing, loader: NoLoader())
    }

    /// Runs until the token has been replaced often enough, or the time is up.
    static func measure(_ options: Options.Fleet, print: @escaping @Sendable (String) -> Void) async throws -> FleetSummary {
        try await FleetRun(options, print: print).run()
    }

    private func run() async throws -> FleetSummary {
        defer { end() }
        try FleetGrant.requireOwn(try await store.load())
        let start = clock.now
        try await signIn()
        for _ in 0..<options.processes { try launch() }
        happens(.over, after: .seconds(options.seconds))
        planKill()
        var isEnding = false
        for await happening in happenings {
            let time = start.duration(to: clock.now)
            switch happening {
            case .over:
                return FleetSummary(watch, processes: options.processes, expiries: options.expiries, elapsed: time)
            case .kill: killOne()
            case .event(let event): try await take(event, at: time)
            }
            guard !isEnding, watch.rotations >= options.expiries else { continue }
            isEnding = true
            // The others adopt the last token.
            happens(.over, after: .milliseconds(500))
        }
        throw CancellationError()
    }

    private func take(_ event: FleetWatch.Event, at time: Duration) async throws {
        let losses = watch.losses.count
        if let line = watch.note(event, at: time) { print(time.line(line)) }
        if watch.losses.count > losses { try await signIn() }
        guard case .ended(let process, let isKilled) = event else { return }
        running[process] = nil
        guard isKilled else { throw FleetProblem(process: process) }
        try launch()
    }

    /// Begins a session, as a user does.
    private func signIn() async throws {
        let change = await owner.replace(with: server.signIn())
        if let failure = change.storeFailure { throw failure }
    }

    private func launch() throws {
        let process = Process(), output = Pipe()
        guard let program = Bundle.main.executableURL else { throw UsageError("race-lab can't find its own program") }
        process.executableURL = program
        process.arguments = [FleetWorker.flag, server.url.absoluteString, options.store]
        process.standardOutput = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let number = process.processIdentifier
        running[number] = process
        happen.yield(.event(.started(number)))
        Thread.detachNewThread { [happen, output = output.fileHandleForReading] in
            Self.read(output) { happen.yield(.event(.said(number, $0))) }
            process.waitUntilExit()
            happen.yield(.event(.ended(number, signal: process.terminationReason == .uncaughtSignal)))
        }
    }

    /// Blocks until a process says nothing more; tells each whole line.
    private static func read(_ output: FileHandle, _ report: (FleetWorker.Line) -> Void) {
        var rest = ""
        while case let data = output.availableData, !data.isEmpty {
            rest += String(decoding: data, as: UTF8.self)
            while let end = rest.firstIndex(of: "\n") {
                if let line = FleetWorker.Line(rest[..<end]) { report(line) }
                rest.removeSubrange(...end)
            }
        }
    }

    /// Between half a second and three.
    private func planKill() {
        if options.kills { happens(.kill, after: .milliseconds(.random(in: 500..<3_000))) }
    }

    private func killOne() {
        if let process = running.keys.randomElement() { _ = kill(process, SIGKILL) }
        planKill()
    }

    private func happens(_ happening: Happening, after pause: Duration) {
        Task { [happen] in
            try await Task.sleep(for: pause)
            happen.yield(happening)
        }
    }

    private func end() {
        happen.finish()
        for process in running.keys { _ = kill(process, SIGKILL) }
    }
}

extension Options.Fleet {
    /// What the run does, told before it begins.
    var opening: String {
        """
        \(counted(processes, "process shares", plural: "processes share")) the grant in the file \(store), at a server that replaces \
        each refresh token and ends the session if one comes twice. Kill a process with 'kill -9 PROCESS' and watch: another \
        takes its place.
        """.wrapped(indent: 0)
    }
}

/// A process of the fleet has ended without having been killed.
struct FleetProblem: Error, CustomStringConvertible {
    let process: Int32

    var description: String { "process \(process) has ended by itself, which is a fault of race-lab" }
}
