import AccessTokens
import AccessTokensSharing
import Foundation

/// Measures for how long processes that share a grant get no token after something goes wrong, and says which sessions are lost.
///
/// Arguments: the stores; all whose servers run unless named. `servers` and `.ci/start-etcd` start them. What begins with `only=` is
/// part of the names of the trials.
@main
struct Outages {
    static func main() async throws {
        var arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.first == "work" {
            return try await work(arguments[1], arguments[2], arguments[3], isFirst: arguments[4] == "0")
        }
        let only = arguments.first { $0.hasPrefix("only=") }?.dropFirst(5) ?? ""
        arguments.removeAll { $0.hasPrefix("only=") }
        for kind in arguments.isEmpty ? TrialStore.kinds : arguments {
            let store = TrialStore(kind: kind, folder: "/")
            try await store.prepare()
            let alone = (store.hasServer ? Trial.absences : []) + (store.hasSettings ? Trial.refusals : [])
            for group in [Trial.all, store.hasSettings ? Trial.clockSteps : []] + alone.map({ [$0] }) {
                // No more at once than two processors bear.
                var rest = group.filter { only.isEmpty || $0.name.contains(only) }[...]
                await withTaskGroup(of: Void.self) { tasks in
                    func next() {
                        guard let trial = rest.popFirst() else { return }
                        tasks.addTask {
                            do { tell(try await Course(trial, in: kind).run()) } catch {
                                tell("\(kind)\t\(trial.name)\t\(error)")
                            }
                        }
                    }
                    for _ in 1...14 { next() }
                    while await tasks.next() != nil { next() }
                }
            }
        }
    }

    private static func tell(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

    /// Asks for tokens until the process is killed or the session has ended.
    static func work(_ kind: String, _ folder: String, _ text: String, isFirst: Bool) async throws {
        _ = signal(SIGINT, SIG_DFL)
        let trial = try JSONDecoder().decode(Trial.self, from: Data(text.utf8)),
            server = TrialServer(folder: folder, trial: trial)
        let tokens = try trial.service(
            over: TrialStore(kind: kind, folder: folder), server, offset: isFirst ? 0 : trial.hostOffset)
        var since = TrialServer.now, told = 0.0
        while true {
            do {
                _ = try await tokens.retrieveToken()
                let now = TrialServer.now
                if now - since > 0.1 || now - told > 0.5 {
                    server.note("served \(since)")
                    told = now
                }
                since = now
            } catch let error as TokenServiceError where error.remedy == .signIn {
                server.note("lost \(error)")
                exit(3)
            } catch {
                // A pause, a wait, or a store that is away.
                server.note("failed \(error)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }
}

extension Trial {
    func service(over store: TrialStore, _ server: TrialServer, offset: Int) throws -> TokenService {
        TokenService(
            policy: RefreshPolicy(loadTimeout: .seconds(limits)), sharedStore: try store.opened(),
            sharing: TokenSharing(transportLimit: .seconds(limits), serverGrace: grace.map { .seconds($0) }),
            environment: TokenService.Environment(wallClock: { Date() + Double(offset) }), loader: server)
    }
}

/// One trial over one store.
struct Course {
    let trial: Trial
    let store: TrialStore
    let server: TrialServer

    init(_ trial: Trial, in kind: String) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "outage-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        self.trial = trial
        (store, server) = (TrialStore(kind: kind, folder: folder), TrialServer(folder: folder, trial: trial))
    }

    struct Line {
        let time: Double, process: pid_t, words: [String]
        var event: String { words[0] }
    }

    func ledger() -> [Line] {
        let text = (try? String(contentsOf: server.file("ledger"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ").map { String($0) }
            guard words.count > 2, let time = Double(words[0]), let process = pid_t(words[1]) else { return nil }
            return Line(time: time, process: process, words: Array(words[2...]))
        }
    }

    func start(_ number: Int) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
        let text = String(decoding: try JSONEncoder().encode(trial), as: UTF8.self)
        process.arguments = ["work", store.kind, store.folder, text, "\(number)"]
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }

    private func until(_ limit: Double, _ isDone: ([Line]) -> Bool) async throws -> Bool {
        let end = TrialServer.now + limit
        while TrialServer.now < end {
            if isDone(ledger()) { return true }
            try await Task.sleep(for: .milliseconds(20))
        }
        return false
    }

    /// Waits for the beginning of the next load, and returns its process.
    private func nextLoad(after time: Double) async throws -> pid_t? {
        var holder: pid_t?
        _ = try await until(30) { lines in
            holder = lines.first { $0.event == "began" && $0.time > time }?.process
            return holder != nil
        }
        return holder
    }

    func run() async throws -> String {
        let first = try trial.service(over: store, server, offset: 0)
        await first.replace(with: try server.signIn())
        var processes: [Process] = []
        defer { for process in processes { kill(process.processIdentifier, SIGKILL) } }
        for number in 0..<3 { processes.append(try start(number)) }
        let ready = try await until(60) { lines in
            lines.filter { $0.event == "issued" }.count >= 3
                && Set(lines.filter { $0.event == "served" }.map(\.process)).count == 3
        }
        guard ready else { return "\(store.kind)\t\(trial.name)\tnever began: \(ledger().map(\.words).suffix(3))" }

        if case .storeClock = trial.fault { try Data().write(to: server.file("slow")) }
        let began = TrialServer.now
        if case .drop(let isAnswer) = trial.fault {
            try Data().write(to: server.file(isAnswer ? "drop-answer" : "drop-request"))
        }
        guard let holder = try await nextLoad(after: began) else { return "\(store.kind)\t\(trial.name)\tno load" }
        var fault = TrialServer.now, dead: pid_t?
        switch trial.fault {
        case .signal(let signal, let after):
            try await Task.sleep(for: .seconds(after))
            (fault, dead) = (TrialServer.now, holder)
            kill(holder, signal)
        case .drop: break
        case .storeClock(let seconds, let isKilled):
            try await Task.sleep(for: .seconds(1))
            if isKilled {
                kill(holder, SIGKILL)
                dead = holder
            }
            try await store.stepClock(by: seconds)
            fault = TrialServer.now
        case .away(let seconds):
            try await Task.sleep(for: .seconds(0.1))
            try store.signal("STOP")
            fault = TrialServer.now
            try await Task.sleep(for: .seconds(seconds))
            try store.signal("CONT")
        case .unwritable(let seconds):
            fault = TrialServer.now
            try await store.allowWrites(false)
            try await Task.sleep(for: .seconds(seconds))
            try await store.allowWrites(true)
        }
        if case .away = trial.fault {} else { try await Task.sleep(for: .seconds(1)) }
        if trial.isJoined { processes.append(try start(3)) }

        let alive = processes.map(\.processIdentifier).filter { $0 != dead }
        _ = try await until(200) { lines in
            if lines.contains(where: { $0.event == "lost" }) { return true }
            // Each got a token of after the fault, so long after it that the next rotation is over as well.
            guard let issued = lines.last(where: { $0.event == "issued" })?.time, issued > fault + 3 else { return false }
            return alive.allSatisfy { process in
                lines.contains { $0.process == process && $0.event == "served" && $0.time > issued }
            }
        }
        let lines = ledger()
        let gaps = alive.compactMap { process in
            lines.filter { $0.process == process && $0.event == "served" && $0.time > fault }
                .map { $0.time - max(Double($0.words[1]) ?? 0, fault) }.max()
        }
        let longest = gaps.max().map { String(format: "%.1f s", $0) } ?? "-"
        let rotations = lines.filter { $0.event == "issued" }.count
        var loss = "kept"
        if let reuse = lines.first(where: { $0.event == "reuse" }) {
            let token = reuse.words[1]
            let holders = lines.filter { $0.event == "began" && $0.words[1] == token }.map {
                "\($0.process == dead ? "dead" : "alive")"
            }
            loss = "LOST \(String(format: "%.1f", reuse.time - fault)) s after, presented by \(holders)"
        } else if let lost = lines.first(where: { $0.event == "lost" }) {
            loss = "LOST: \(lost.words.joined(separator: " "))"
        }
        return "\(store.kind)\t\(trial.name)\t\(longest)\t\(rotations) rotations\t\(loss)"
    }
}
