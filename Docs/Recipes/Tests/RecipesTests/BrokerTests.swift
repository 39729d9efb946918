import AccessTokens
import AccessTokensFiles
import AsyncHTTPClient
import Foundation
import LoopbackServers
import NIOCore
import NIOHTTP1
import Testing

@testable import ThroughABroker
@testable import worker

/// A directory for a broker, the ledger of a strict server, and the processes that use them.
final class BrokerPlace: Sendable {
    let folder: String
    let settings: Settings
    var server: StrictServer { StrictServer(path: settings.ledger) }
    var store: FileTokenStore { FileTokenStore(path: settings.directory + "/token") }

    init(_ adjust: (inout Settings) -> Void = { _ in }) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "broker-\(UUID().uuidString.prefix(8))").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        var settings = Settings(
            directory: folder + "/broker", ledger: folder + "/ledger", program: try program("worker").path)
        adjust(&settings)
        self.settings = settings
        try Data().write(to: URL(fileURLWithPath: settings.ledger))
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// The result of a sign-in: a grant, and no token that could expire on a busy machine.
    func grant() throws -> AccessToken {
        AccessToken("spent", lifetime: .zero, refreshToken: try server.signIn().refreshToken)
    }

    func signIn() async throws {
        let isDone = try await BrokerDirectory(path: settings.directory).signIn(with: grant(), in: store)
        try #require(isDone)
    }

    /// Starts a process, which ends with its standard input unless it is waited for.
    func start(_ role: String) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: settings.program)
        process.arguments = [role, settings.text]
        try process.run()
        return process
    }

    func client(
        over client: HTTPClient, startLimit: Duration = .seconds(20), answerLimit: TimeAmount = .seconds(38),
        start: (@Sendable () throws -> Void)? = nil
    ) throws -> BrokerClient {
        let settings = settings
        return try BrokerClient(
            in: BrokerDirectory(path: settings.directory), over: client, startLimit: startLimit, answerLimit: answerLimit
        ) {
            try start?() ?? BrokerClient.launch(settings.program, ["broker", settings.text])
        }
    }

    /// The processes' output so far.
    func notes(_ first: String) -> [String] {
        let text = (try? String(contentsOfFile: settings.notes, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { $0.hasPrefix("\(first) ") }.map { String($0.dropFirst(first.count + 1)) }
    }

    /// The exchanges so far: what was presented, what came of it, and by whom.
    var exchanges: [(presented: String, answer: String, process: pid_t)] {
        get throws {
            try String(contentsOfFile: settings.ledger, encoding: .utf8).split(separator: "\n").compactMap { line in
                let words = line.split(separator: " ")
                guard words.count == 4, words[0] != "signin", let process = pid_t(words[2]) else { return nil }
                return (String(words[0]), String(words[1]), process)
            }
        }
    }

    /// The broker that runs, if one does.
    var broker: pid_t? {
        get throws {
            let file = settings.directory + "/lock"
            guard let status = try? FileManager.default.attributesOfItem(atPath: file)[.systemFileNumber] as? Int else {
                return nil
            }
            let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n")
            return locks.first { $0.contains(":\(status) ") && !$0.contains("->") }.flatMap { line in
                pid_t(line.split(separator: " ")[4])
            }
        }
    }

    /// Waits until no broker runs.
    func ended() async throws {
        _ = try #require(await BrokerDirectory(path: settings.directory).lock(waiting: .seconds(30)))
    }

    /// Ends the broker that a test has begun, and those that clients have.
    func end() async throws {
        let directory = try BrokerDirectory(path: settings.directory)
        while try await directory.lock(waiting: .milliseconds(200)) == nil {
            if let broker = try broker { kill(broker, SIGTERM) }
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct `A broker` {
    @Test func `clients that are killed lose no session`() async throws {
        let place = try BrokerPlace { ($0.lifetime, $0.delay) = (2_000, 700) }
        try await place.signIn()
        var agents: [Process] = []
        for _ in 1...60 {
            while agents.count < 4 { try agents.append(place.start("agent")) }
            try await Task.sleep(for: .milliseconds(.random(in: 50...250)))
            let victim = agents.remove(at: .random(in: 0..<4))
            kill(victim.processIdentifier, SIGKILL)
        }
        for agent in agents { kill(agent.processIdentifier, SIGKILL) }
        let exchanges = try place.exchanges
        print("60 clients killed: \(exchanges.count) rotations, \(exchanges.count { $0.answer == "reuse" }) reuses")
        #expect(exchanges.count > 2 && exchanges.allSatisfy { $0.answer != "reuse" })
        #expect(Set(exchanges.map(\.process)).count == 1, "one broker did all of it")
        // A busy machine may be slower than the leeway of these tokens.
        let failures = place.notes("failed").filter { !$0.contains("already expired") }
        #expect(place.notes("lost").isEmpty && failures.isEmpty, "\(failures)")
        try await place.end()
    }

    @Test func `a broker that is killed loses a session only in the middle of a refresh`() async throws {
        let place = try BrokerPlace { ($0.lifetime, $0.delay) = (300, 100) }
        var ledger = try Ledger(path: place.settings.ledger), agents: [Process] = [], problems: [String] = []
        while ledger.killed.count < 20 {
            if ledger.sessions == 0 || ledger.hasEnded {
                for agent in agents { kill(agent.processIdentifier, SIGKILL) }
                try await place.end()
                try await place.signIn()
                problems += try ledger.read()
                agents = try (1...3).map { _ in try place.start("agent") }
            }
            let goal = ledger.rotations + 1
            while ledger.rotations < goal, !ledger.hasEnded {
                try await Task.sleep(for: .milliseconds(.random(in: 1...9)))
                problems += try ledger.read()
            }
            try await Task.sleep(for: .milliseconds(.random(in: 0...300)))
            if !ledger.hasEnded, let broker = try place.broker {
                problems += try ledger.read()
                ledger.killed.insert(broker)
                kill(broker, SIGKILL)
            }
        }
        for agent in agents { kill(agent.processIdentifier, SIGKILL) }
        try await place.end()
        problems += try ledger.read()
        print("\(ledger.killed.count) brokers killed: \(ledger.summary)")
        #expect(problems.isEmpty && ledger.rotations > 10, "\(problems)")
    }

    @Test func `many clients at once start one broker, which ends when nobody asks, and the next one goes on`() async throws {
        let place = try BrokerPlace {
            $0.idle = 500; $0.lifetime = 3_600_000
        }
        try await place.signIn()
        for _ in 1...3 {
            try await withClient(.forBroker) { client in
                try await withThrowingTaskGroup(of: String.self) { group in
                    for _ in 1...12 {
                        group.addTask { try await TokenService.asking(place.client(over: client)).retrieveToken().value }
                    }
                    let tokens = try await group.reduce(into: Set()) { $0.insert($1) }
                    #expect(tokens.count == 1)
                }
            }
            try await place.ended()
            // The next broker restores the token.
            #expect(try place.exchanges.count == 1)
        }
    }

    @Test(arguments: [true, false])
    func `a broker that is told to end saves first what it has begun`(isWaitedFor: Bool) async throws {
        let place = try BrokerPlace { ($0.lifetime, $0.delay) = (60_000, 1_000) }
        try await place.signIn()
        let broker = try place.start("broker"), agent = try place.start("agent")
        try await until { try !place.exchanges.isEmpty }
        if !isWaitedFor { kill(agent.processIdentifier, SIGKILL) }
        for _ in 1...3 { kill(broker.processIdentifier, SIGTERM) }
        try await until { !broker.isRunning }
        #expect(broker.terminationReason == .exit && broker.terminationStatus == 0)
        #expect(try await place.store.load()?.token.refreshToken == "2")
        kill(agent.processIdentifier, SIGKILL)
        try await place.end()
        #expect(place.notes("failed").isEmpty, "\(place.notes("failed"))")
    }

    @Test func `a client that has sent half a request keeps no broker from ending`() async throws {
        let place = try BrokerPlace { $0.end = 1_000 }
        try await place.signIn()
        let broker = try place.start("broker")
        try await until { FileManager.default.fileExists(atPath: place.settings.directory + "/socket") }
        let socket = try UnixSocket(connectedTo: place.settings.directory + "/socket")
        socket.write("POST /1/token HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc")
        try await Task.sleep(for: .milliseconds(200))
        kill(broker.processIdentifier, SIGTERM)
        try await until { !broker.isRunning }
        #expect(broker.terminationReason == .exit)
    }

    @Test func `a token that an API has refused is replaced once, for all clients`() async throws {
        let place = try BrokerPlace { $0.lifetime = 3_600_000 }
        try await place.signIn()
        try await withClient(.forBroker) { client in
            let services = try (1...4).map { _ in TokenService.asking(try place.client(over: client)) }
            var refused: AccessToken?
            for service in services {
                let token = try await service.retrieveToken()
                #expect(token.refreshToken == nil && token.lifetime ?? .zero > .seconds(3500))
                refused = token
            }
            // The broker has ended meanwhile: the next one doesn't hand out what is refused either.
            try await place.end()
            let old = try #require(refused)
            for service in services { #expect(try await service.retrieveToken(insteadOf: old).value == "access-3") }
        }
        #expect(try place.exchanges.map(\.presented) == ["1", "2"])
        try await place.end()
    }

    @Test func `no refresh token crosses the socket, and nothing says more of a failure than its name`() async throws {
        let place = try BrokerPlace { $0.lifetime = 3_600_000 }
        try await place.signIn()
        try await withClient(.forBroker) { client in
            let service = TokenService.asking(try place.client(over: client))
            _ = try await service.retrieveToken()
            let url = try #require(URL(httpURLWithSocketPath: place.settings.directory + "/socket", uri: "/1/token"))
            var request = HTTPClientRequest(url: url.absoluteString)
            request.method = .POST
            let answer = try await client.execute(request, timeout: .seconds(20))
            let text = String(buffer: try await answer.body.collect(upTo: 1 << 20))
            #expect(text.contains("access-2") && !text.contains("refresh_token") && !text.contains(#""2""#), "\(text)")
        }
        try await place.end()
    }

    @Test func `a sign-out holds for all clients, and the next user's token goes to none of the last one's requests`()
        async throws
    {
        let place = try BrokerPlace { $0.lifetime = 3_600_000 }
        try await place.signIn()
        try await withClient(.forBroker) { client in
            let (anna, other) = (TokenService.asking(try place.client(over: client)), try place.client(over: client))
            let token = try await anna.retrieveToken()
            try await other.signOut()
            #expect(place.notes("revoked") == ["2"])
            try await place.ended()
            let tokens = TokenService.asking(other)
            let nobody = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
            #expect(nobody?.remedy == .signIn)
            let directory = try BrokerDirectory(path: place.settings.directory)
            try await signIn(place.grant(), other, directory, place.store, tokens)
            #expect(try await tokens.retrieveToken().value == "access-4")
            let error = await #expect(throws: TokenServiceError.self) { try await anna.retrieveToken(insteadOf: token) }
            #expect(error?.remedy == .signIn)
            _ = await anna.reset()
            #expect(try await anna.retrieveToken().value == "access-4")
        }
        try await place.end()
    }

    @Test func `a session that the server has ended is a sign-in for each client`() async throws {
        let place = try BrokerPlace()
        try await place.signIn()
        // A thief presents the token first.
        _ = try await place.server.loadToken(replacing: place.store.load()?.token)
        try await withClient(.forBroker) { client in
            for _ in 1...2 {
                let service = TokenService.asking(try place.client(over: client))
                let error = await #expect(throws: TokenServiceError.self) { try await service.retrieveToken() }
                #expect(error?.remedy == .signIn && error?.underlying is BrokerAnswer)
            }
        }
        #expect(try place.exchanges.map(\.answer) == ["2", "reuse"])
        try await place.end()
    }
}

@Suite(.timeLimit(.minutes(5)))
struct `What a broker and its clients find in place of each other` {
    func error(
        _ place: BrokerPlace, startLimit: Duration = .milliseconds(300), start: @escaping @Sendable () throws -> Void = {}
    ) async throws -> TokenServiceError? {
        try await withClient(.forBroker) { client in
            let service = TokenService.asking(try place.client(over: client, startLimit: startLimit, start: start))
            return await #expect(throws: TokenServiceError.self) { try await service.retrieveToken() }
        }
    }

    @Test func `a path that is too long for a socket is an error that says so`() throws {
        let limit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1
        let folder = FileManager.default.temporaryDirectory.path + "/"
        let name = String(repeating: "x", count: limit - folder.utf8.count - "/socket".utf8.count)
        defer { try? FileManager.default.removeItem(atPath: folder + name) }
        #expect(try BrokerDirectory(path: folder + name).socket.utf8.count == limit)
        let error = #expect(throws: BrokerError.self) { try BrokerDirectory(path: folder + name + "x") }
        #expect(error?.description.hasSuffix("/socket: longer than \(limit) bytes") == true)
    }

    @Test func `a path that isn't absolute would be another one for the broker, and is refused`() {
        let error = #expect(throws: BrokerError.self) { try BrokerDirectory(path: "reports") }
        #expect(error?.description == "reports must be an absolute path")
    }

    @Test(arguments: [0o755, 0o710, 0o707, 0o701, 0o770])
    func `a directory that others may enter is refused, also when it was right before`(mode: Int) async throws {
        let place = try BrokerPlace()
        _ = try BrokerDirectory(path: place.settings.directory)
        let path = place.settings.directory
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o700)
        try await withClient(.forBroker) { client in
            let loader = try place.client(over: client)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            await #expect(throws: BrokerError.self) { try await loader.loadToken(replacing: nil) }
        }
        let error = #expect(throws: BrokerError.self) { try BrokerDirectory(path: path) }
        #expect(error?.description == "\(path) must be your directory, with mode 700")
        let broker = try place.start("broker")
        try await until { !broker.isRunning }
        #expect(broker.terminationStatus == 1)
    }

    @Test func `a link, a file, a missing parent and another user's directory are refused`() throws {
        let place = try BrokerPlace()
        let (link, real) = (place.folder + "/link", place.folder + "/real")
        try FileManager.default.createDirectory(atPath: real, withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: real)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: real)
        for path in [link, place.settings.ledger] {
            let error = #expect(throws: BrokerError.self) { try BrokerDirectory(path: path) }
            #expect(error?.description == "\(path) must be your directory, with mode 700")
        }
        let missing = #expect(throws: BrokerError.self) { try BrokerDirectory(path: place.folder + "/a/b") }
        #expect(missing?.description.hasSuffix("/a/b: No such file or directory") == true)
        guard getuid() == 0 else { return }
        _ = try BrokerDirectory(path: real)
        _ = unsafe chown(real, 65534, 65534)
        let foreign = #expect(throws: BrokerError.self) { try BrokerDirectory(path: real) }
        #expect(foreign?.description == "\(real) must be your directory, with mode 700")
    }

    @Test(.enabled(if: getuid() == 0, "only root can become another user"))
    func `another user of the machine can neither read the socket nor ask it`() async throws {
        let place = try BrokerPlace { $0.lifetime = 3_600_000 }
        try await place.signIn()
        try await withClient(.forBroker) { client in
            _ = try await TokenService.asking(place.client(over: client)).retrieveToken()
        }
        // That user may enter what is above.
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: place.folder)
        let directory: String = place.settings.directory
        await #expect(processExitsWith: .success) { [directory = directory as String] in
            #expect(FileManager.default.fileExists(atPath: directory + "/socket"))
            try #require(setgid(65534) == 0 && setuid(65534) == 0)
            for file in ["/socket", "/lock", "/token"] {
                #expect(unsafe open(directory + file, O_RDONLY) == -1 && errno == EACCES)
            }
            #expect(throws: UnixSocket.Failure.self) { try UnixSocket(connectedTo: directory + "/socket") }
            #expect(throws: BrokerError.self) { try BrokerDirectory(path: directory) }
        }
        try await place.end()
    }

    @Test func `the socket of a killed broker doesn't count as a broker`() async throws {
        let place = try BrokerPlace { $0.lifetime = 3_600_000 }
        try await place.signIn()
        try await withClient(.forBroker) { client in
            // The client starts the broker.
            #expect(try await TokenService.asking(place.client(over: client)).retrieveToken().value == "access-2")
            kill(try #require(try place.broker), SIGKILL)
            try await place.ended()
            #expect(FileManager.default.fileExists(atPath: place.settings.directory + "/socket"))
            #expect(try await TokenService.asking(place.client(over: client)).retrieveToken().value == "access-2")
        }
        try await place.end()
    }

    @Test func `a broker that dies in the middle of an answer is replaced, and the client asks again`() async throws {
        let place = try BrokerPlace { $0.lifetime = 3_600_000 }
        try await place.signIn()
        let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"format\""
        for answer in ["", "HTTP/1.1 200 OK\r\nConten", half] {
            let dying = try UnixServer(at: place.settings.directory + "/socket", answer: answer)
            let token = try await withClient(.forBroker) { client in
                try await TokenService.asking(place.client(over: client)).retrieveToken()
            }
            #expect(token.value == "access-2")
            try await place.end()
            withExtendedLifetime(dying) {}
        }
        #expect(try place.exchanges.count == 1)
    }

    @Test(arguments: [
        ("HTTP/1.1 404 Not Found\r\n", "", TokenServiceError.Remedy.programChange, "of another version"),
        ("HTTP/1.1 500 Error\r\n", "", .programChange, "of another version"),
        ("HTTP/1.1 200 OK\r\n", "<html>", .retry, "not written by StoredToken"),
        ("HTTP/1.1 503 Unavailable\r\n", "<html>", .retry, "JSON"),
        ("HTTP/1.1 503 Unavailable\r\n", #"{"help":"signIn","seconds":1e400}"#, .retry, "JSON"),
        ("HTTP/1.1 503 Unavailable\r\n", #"{"help":"dance","seconds":9223372036854775807}"#, .retry, "no token"),
    ])
    func `the answer of a broker of another version is an error`(
        head: String, body: String, remedy: TokenServiceError.Remedy, text: String
    ) async throws {
        let place = try BrokerPlace()
        _ = try BrokerDirectory(path: place.settings.directory)
        let other = try UnixServer(
            at: place.settings.directory + "/socket", answer: head + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        let error = try await error(place)
        #expect(error?.remedy == remedy && error?.description.contains(text) == true, "\(error as Any)")
        withExtendedLifetime(other) {}
    }

    @Test func `a broker that is stopped is an error at the client's own limit, and answers when it goes on`() async throws {
        let place = try BrokerPlace { $0.lifetime = 3_600_000 }
        try await place.signIn()
        try await withClient(.forBroker) { client in
            _ = try await TokenService.asking(place.client(over: client)).retrieveToken()
            let broker = try #require(try place.broker)
            kill(broker, SIGSTOP)
            defer { kill(broker, SIGCONT) }
            let tokens = TokenService.asking(
                try place.client(over: client, startLimit: .milliseconds(100), answerLimit: .milliseconds(200)))
            let error = await #expect(throws: TokenServiceError.self) { try await tokens.retrieveToken() }
            #expect(error?.remedy == .retry && error?.underlying is BrokerError, "\(error as Any)")
            kill(broker, SIGCONT)
            #expect(try await TokenService.asking(place.client(over: client)).retrieveToken().value == "access-2")
        }
        try await place.end()
    }

    @Test func `a program that is not there, or that ends at once, is an error that says what to do`() async throws {
        let place = try BrokerPlace()
        let ending = try await error(place) { try BrokerClient.launch("/bin/false", []) }
        #expect(ending?.remedy == .retry && ending?.description.contains("no broker answers") == true, "\(ending as Any)")
        let missing = try await error(place) { try BrokerClient.launch("/nowhere/broker", []) }
        #expect(missing?.underlying is CocoaError, "\(missing as Any)")
    }

    @Test func `a file in the socket's place stays, and the broker ends with an error`() async throws {
        let place = try BrokerPlace()
        try await place.signIn()
        try Data("mine".utf8).write(to: URL(fileURLWithPath: place.settings.directory + "/socket"))
        let broker = try place.start("broker")
        try await until { !broker.isRunning }
        #expect(broker.terminationStatus == 1)
        #expect(try String(contentsOfFile: place.settings.directory + "/socket", encoding: .utf8) == "mine")
    }
}

/// The samples of the guide.
private func makeTokens(
    _ home: String, program: String, over client: HTTPClient
) throws -> TokenService {
    let broker = BrokerClient(
        in: try BrokerDirectory(path: home + "/.reports"), over: client
    ) {
        try BrokerClient.launch(program, ["broker"])
    }
    let tokens = TokenService.asking(broker)
    return tokens
}

private func runBroker(_ home: String, loader: some TokenLoader) async throws {
    let directory = try BrokerDirectory(path: home + "/.reports")
    let store = FileTokenStore(path: directory.path + "/token")
    let tokens = TokenService(store: store, loader: loader)
    try await Broker(
        directory: directory, tokens: tokens, store: store
    ).run()
}

private func signIn(
    _ token: AccessToken, _ broker: BrokerClient, _ directory: BrokerDirectory, _ store: FileTokenStore,
    _ tokens: TokenService
) async throws {
    try await broker.signOut()
    while try await !directory.signIn(with: token, in: store) {
        try await broker.signOut()
    }
    _ = await tokens.reset()
}
