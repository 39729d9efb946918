#if os(macOS) || os(Linux)
import AccessTokens
import AccessTokensOAuth
import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite(.timeLimit(.minutes(10)), .inRealTime)
final class CredentialCommandTests {
    let directory = FileManager.default.temporaryDirectory.appending(path: "command-\(UUID().uuidString)")
    var pipe: String { directory.appending(path: "alive").path }

    init() throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try #require(unsafe mkfifo(pipe, 0o600) == 0)
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }

    func shell(_ script: String, _ timeLimit: Duration = .seconds(300)) -> Credential {
        .command("/bin/sh", ["-c", script], timeLimit: timeLimit)
    }

    func problem(_ command: Credential) async throws -> String {
        let error = try await #require(throws: OAuthError.self) { try await command.read() }
        #expect(error.code == .credentialsUnavailable && error.remedy == .retry && !error.mayBeUnderWay)
        #expect(!texts(error).contains("hush"))
        return "\(error)"
    }

    @Test func `arguments reach the program unchanged, without a shell`() async throws {
        let argument = "$HOME `id`; 'a' \"b\" * \\n"
        #expect(try await Credential.command("/bin/echo", [argument]).read() == argument)
    }

    @Test(arguments: ["printf x", "printf ' x\n\n'", "cat; printf x", "printf x; echo hush >&2"])
    func `the credential is what the program prints to its standard output, and its standard input is empty`(script: String)
        async throws
    {
        #expect(try await shell(script).read() == "x")
    }

    // Such as Foundation's sockets on Linux, through which requests are sent.
    @Test func `a program inherits no open file`() async throws {
        let file = unsafe open("/dev/null", O_RDONLY)
        defer { close(file) }
        #expect(try await shell("if (: <&\(file)) 2>&-; then printf inherited; else printf none; fi").read() == "none")
    }

    // The threads open it without close-on-exec at any time, maybe after the list of open files was read.
    @Test func `a program inherits no file that other threads open meanwhile`() async throws {
        let file = directory.appending(path: "opened").path
        try Data().write(to: URL(fileURLWithPath: file))
        let isOver = Lock(false)
        defer { isOver.withLock { $0 = true } }
        for _ in 1...2 {
            Thread.detachNewThread {
                while !isOver.withLock({ $0 }) {
                    let files = (1...20).map { _ in unsafe open(file, O_RDONLY) }
                    for file in files { close(file) }
                }
            }
        }
        for _ in 1...40 { #expect(try await !Credential.command("/bin/ls", ["-l", "/dev/fd/"]).read().contains("opened")) }
    }

    @Test func `the error of a failing program names its status, and nothing that it printed`() async throws {
        #expect(try await problem(shell("echo hush; echo hush >&2; exit 7")).contains("/bin/sh ended with status 7"))
        #expect(try await problem(shell("echo hush; kill -9 $$")).contains("was ended by signal 9"))
        #expect(try await problem(.command("/no/such/program")).contains("can't be started: No such file"))
        #expect(try await problem(.command("echo", ["hush"])).contains("absolute path"))
        #expect(try await problem(.command("/bin/echo", ["hush\0"])).contains("zero byte"))
        #expect(try await problem(shell("true")).contains("is empty"))
        #expect(try await problem(shell(#"printf '\377'"#)).contains("not UTF-8"))
    }

    @Test func `a program that prints without end is killed`() async throws {
        #expect(try await problem(shell("while echo hush; do :; done")).contains("provides more than 64 KiB"))
        let longest = try await shell("head -c 65536 /dev/zero | tr '\\0' a").read()
        #expect(longest.utf8.count == 1 << 16)
    }

    /// The output of a script's children on their fourth descriptor; ends when the last of them has ended.
    func signsOfLife() -> AsyncStream<Data> {
        AsyncStream { [pipe] continuation in
            Thread.detachNewThread {
                let file = FileHandle(forReadingAtPath: pipe)
                while let data = file?.availableData, !data.isEmpty { continuation.yield(data) }
                continuation.finish()
            }
        }
    }

    /// It runs for a day unless it is killed, as does its child, which keeps the output open.
    var slow: String { "exec 3>'\(pipe)'; trap '' TERM; sleep 86400 & echo started >&3; sleep 86400" }

    @Test func `a program that takes too long is killed with its children`() async throws {
        let signs = signsOfLife()
        #expect(try await problem(shell(slow, .seconds(1))).contains("did not end within 1.0 seconds"))
        for await _ in signs {}
    }

    @Test func `a program that only closes its output is waited for, and killed at the time limit`() async throws {
        #expect(try await problem(shell("exec >&-; sleep 86400", .milliseconds(200))).contains("did not end within"))
    }

    #if os(Linux)
    // In its own session it isn't killed, and it keeps the output open; the partial output must not be taken for all of it.
    @Test func `output that a process of another group keeps open is never taken as complete`() async throws {
        let script = "setsid sleep 5 & printf hush"
        #expect(try await problem(shell(script, .milliseconds(300))).contains("did not end within"))
    }
    #endif

    @Test func `a read that is cancelled kills the program with its children`() async throws {
        let shell = shell(slow)
        let reading = Task { try await shell.read() }
        for await _ in signsOfLife() { reading.cancel() }
        await #expect(throws: CancellationError.self) { try await reading.value }
    }

    @Test func `a cancelled task reads nothing`() async throws {
        let shell = shell("sleep 86400")
        let reading = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try await shell.read()
        }
        await #expect(throws: CancellationError.self) { try await reading.value }
    }

    @Test func `no text shows the arguments`() {
        let command = Credential.command("/bin/echo", ["hush"])
        #expect(!texts(command).contains("hush"))
    }
}
#endif
