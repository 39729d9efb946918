#if os(macOS) || os(Linux)
import Dispatch
import TokenServiceConcurrency
import AccessTokensHTTP

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import FoundationEssentials
import Musl
#else
import FoundationEssentials
import Glibc
#endif

extension Credential {
    /// A credential that another program prints.
    ///
    /// ```swift
    /// let identity = Credential.command("/usr/local/bin/identity", ["print-token", "--audience", "https://login.example"])
    /// ```
    ///
    /// Each read runs the program without a shell, so arguments are passed unchanged. It inherits this process's environment, none
    /// of its open files, and an empty standard input. Its standard error is dropped, since it may contain secrets. Only on macOS
    /// and Linux.
    ///
    /// A thread of its own waits for it, never one of the pool. The program has ended when it and all other writers of its output
    /// have. If it takes too long or prints too much, or if the reading task is cancelled, it is killed with all its children,
    /// except those that have left its process group. It is an error if it can't be started or ends with a status other than 0:
    /// the error has the status and nothing of what was printed.
    ///
    /// - Parameters:
    ///   - program: Its absolute path; `PATH` isn't searched.
    ///   - arguments: Its arguments. They must not be secret: other users of the machine can see them.
    ///   - timeLimit: How long it may run, 10 s unless said otherwise: below `RefreshPolicy(loadTimeout:)` together with the
    ///     request that follows. Clamped to 0.1 s through one hour.
    public static func command(
        _ program: String, _ arguments: [String] = [], timeLimit: Duration = .seconds(10)
    ) -> Credential {
        let source = CredentialSource("the command", program), words = [program] + arguments
        let timeLimit = min(max(timeLimit, .milliseconds(100)), .seconds(3600))
        return Credential(source) {
            guard program.hasPrefix("/"), !words.contains(where: { $0.utf8.contains(0) }) else {
                throw source.failure("can't be started: give an absolute path, and no arguments with a zero byte")
            }
            let run = CommandRun(source, timeLimit)
            let watch = TimeLimits(whole: timeLimit).watch { run.end(with: run.timedOut) }
            defer { watch.end() }
            DispatchQueue(label: "AccessTokensOAuth.Credential").async { run.run(words) }
            return try await withTaskCancellationHandler {
                try await run.result.value()
            } onCancel: {
                run.end(with: CancellationError())
            }
        }
    }
}

/// One run of a program.
private final class CommandRun: Sendable {
    private enum State {
        /// The process is about to start (→ `running`), unless it is given up first (→ `over`).
        case starting
        /// The process exists, so its number can't belong to another; becomes `over` just before the process is reaped.
        case running(pid_t)
        case over
    }

    let result = SingleResult<String>()
    private let state = Lock(State.starting)
    private let source: CredentialSource
    private let timeLimit: Duration
    private let deadline: ContinuousClock.Instant

    var timedOut: OAuthError { source.failure("did not end within \(timeLimit.shown)") }

    /// Programs start one at a time, so that none inherits another's pipe and keeps it open.
    private static let beginning = Lock<Void>(())

    init(_ source: CredentialSource, _ timeLimit: Duration) {
        self.source = source
        self.timeLimit = timeLimit
        deadline = .now + timeLimit
    }

    /// Kills the processes and completes the read with an error, unless it is complete.
    func end(with error: any Error) {
        result.complete(with: .failure(error))
        state.withLock { state in
            switch state {
            case .starting: state = .over
            case .running(let process): Self.killAll(process)
            case .over: break
            }
        }
    }

    /// Kills the group and its leader, which may have left the group.
    private static func killAll(_ process: pid_t) {
        for target in [-process, process] { _ = kill(target, SIGKILL) }
    }

    func run(_ words: [String]) {
        result.complete(with: Result { try output(of: words) })
    }

    private func output(of words: [String]) throws -> String {
        let (process, output) = try Self.beginning.withLock { _ in try start(words) }
        defer { _ = close(output) }
        state.withLock { state in
            if case .starting = state { state = .running(process) } else { Self.killAll(process) }
        }
        let bytes = readAll(output)
        if let bytes, bytes.count > CredentialSource.maximumSize { end(with: source.tooLong) }
        // Partial output must not be mistaken for all of it.
        if bytes == nil { end(with: timedOut) }
        let status = try wait(for: process)
        guard status == 0 else {
            let signal = status & 0x7F
            throw source.failure(signal == 0 ? "ended with status \((status >> 8) & 0xFF)" : "was ended by signal \(signal)")
        }
        return try source.credential(in: bytes ?? [])
    }

    /// Reads to the end or just past the limit; `nil` at the deadline, since a process that left the group may keep the pipe
    /// open.
    private func readAll(_ output: Int32) -> [UInt8]? {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 4_096)
        while bytes.count <= CredentialSource.maximumSize {
            var watched = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            let remaining = max(ContinuousClock.now.duration(to: deadline) / .milliseconds(1), 0)
            let ready = unsafe poll(&watched, 1, Int32(remaining.rounded(.up)))
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { return nil }
            let count = unsafe part.withUnsafeMutableBytes { unsafe read(output, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { break }
            bytes += part[..<count]
        }
        return bytes
    }

    /// Waits for the process to end, which the time limit ensures.
    private func wait(for process: pid_t) throws(OAuthError) -> Int32 {
        while waitid(P_PID, id_t(process), nil, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        // Nothing is killed from here on: once the process is reaped, its number may belong to another.
        state.withLock { $0 = .over }
        var status: Int32 = 0
        guard unsafe waitpid(process, &status, 0) == process else {
            throw source.failure("ended, but its status is unknown: this program ignores SIGCHLD or waits for all its children")
        }
        return status
    }

    /// Starts the program as the leader of a process group, with no signal blocked; returns the descriptor of its output.
    private func start(_ words: [String]) throws -> (pid_t, output: Int32) {
        let (output, input) = try makePipe()
        defer { _ = close(input) }
        #if canImport(Darwin)
        var actions: posix_spawn_file_actions_t?
        var attributes: posix_spawnattr_t?
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_CLOEXEC_DEFAULT
        #else
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK
        #endif
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, input, 1)
        unsafe posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        #if !canImport(Darwin)
        // Otherwise the program inherits descriptors without close-on-exec, such as Foundation's sockets. Until it starts, other
        // threads may open more, which get the lowest free numbers. Closing an invalid one is harmless.
        let open = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []).compactMap(Int32.init)
        for file in open + (3..<Int32(open.count) + 1_000) where file > 2 {
            unsafe posix_spawn_file_actions_addclose(&actions, file)
        }
        #endif
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var noSignal = sigset_t()
        unsafe sigemptyset(&noSignal)
        unsafe posix_spawnattr_setsigmask(&attributes, &noSignal)
        unsafe posix_spawnattr_setpgroup(&attributes, 0)
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        let arguments = unsafe words.map { unsafe strdup($0) }
        defer { unsafe arguments.forEach { unsafe free($0) } }
        var process = pid_t()
        let problem = unsafe posix_spawn(&process, words[0], &actions, &attributes, arguments + [nil], environ)
        guard problem == 0 else {
            _ = close(output)
            throw source.failure("can't be started: \(unsafe String(cString: strerror(problem)))")
        }
        return (process, output)
    }

    /// Creates a pipe whose ends no later program inherits.
    private func makePipe() throws(OAuthError) -> (output: Int32, input: Int32) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw source.failure("can't be started: too many files are open") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }
}
#endif
