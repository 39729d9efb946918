import AccessTokens
import AccessTokensFiles
import Foundation

/// Rotates a refresh token through a file store as fast as it can, until it is killed.
///
/// Arguments: the token file and the server's ledger. It writes `issued N` once the server has answered and `saved N` once
/// the store has the answer, a line each. With a third and a fourth argument, a number of bytes beyond which no file may
/// grow and an octal umask, it saves once, and writes the error or `saved`. With one further argument, `ends` or `drains`, it is a
/// ``Tool``. With one argument, a directory, it looks for a key's token there without permission, and writes the errors.
@main
struct Rotator {
    static func main() async throws {
        let arguments = CommandLine.arguments
        if arguments.count == 2 { return try await lookWithoutPermission(into: arguments[1]) }
        let store = FileTokenStore(path: arguments[1])
        if arguments.count > 4, let limit = rlim_t(arguments[3]), let mask = mode_t(arguments[4], radix: 8) {
            umask(mask)
            try await saveOnce(to: store, limit: limit)
        } else if arguments.count > 3 {
            let tool = Tool(store: store, ledgerPath: arguments[2], isRepeatable: arguments[3] == "drains")
            try await tool.run()
        } else {
            try await rotate(store, ledger: try Ledger(path: arguments[2]))
        }
    }

    static func rotate(_ store: FileTokenStore, ledger: Ledger) async throws {
        var ledger = ledger
        var grant = try await store.load().flatMap { $0.token.refreshToken }.flatMap { Int($0) } ?? 0
        while true {
            guard let next = try ledger.exchange(grant) else {
                say("refused \(grant)")
                exit(3)
            }
            say("issued \(next)")
            grant = next
            let token = AccessToken("access-\(grant)", lifetime: .seconds(3600), refreshToken: "\(grant)")
            try await store.save(StoredToken(token, received: Date(timeIntervalSinceReferenceDate: Double(grant))))
            say("saved \(grant)")
        }
    }

    /// Tries to save with a limit on the size of files, which acts like a full disk.
    static func saveOnce(to store: FileTokenStore, limit: rlim_t) async throws {
        var limits = rlimit(rlim_cur: limit, rlim_max: limit)
        #if canImport(Darwin)
        let resource = RLIMIT_FSIZE
        #else
        let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        #endif
        guard unsafe setrlimit(resource, &limits) == 0 else { exit(4) }
        signal(SIGXFSZ, SIG_IGN)
        do {
            try await store.save(StoredToken(AccessToken("SECRET", refreshToken: "SECRET"), received: Date()))
            say("saved")
        } catch {
            say("\(error)")
        }
    }

    /// Removes permissions from the directory of all keys, then from that of one key, and writes each operation's error.
    static func lookWithoutPermission(into directory: String) async throws {
        // Modes don't restrict root, so it gives the directory to another user and continues as that user.
        let other: uid_t = 65_534
        if geteuid() == 0 {
            guard unsafe chown(directory, other, other) == 0, setgid(other) == 0, setuid(other) == 0 else { exit(5) }
        }
        let stores = FileTokenStores<String>(directory: directory), store = stores.store(for: "Anna")
        try await store.save(StoredToken(AccessToken("SECRET"), received: Date()))
        guard let name = try FileManager.default.contentsOfDirectory(atPath: directory).first else { exit(6) }
        let own = directory + "/" + name
        for (mode, path, label) in [(0o600, directory, "600 on all"), (0o600, own, "600 on one"), (0o000, own, "000 on one")] {
            guard unsafe chmod(path, mode_t(mode)) == 0 else { exit(7) }
            let codes = [
                await code { _ = try await store.load() },
                await code { try await store.save(StoredToken(AccessToken("x"), received: Date())) },
                await code { try await store.remove() }, await code { _ = try await stores.storedKeys() },
            ]
            say("\(label): \(codes.joined(separator: " "))")
            guard unsafe chmod(path, 0o700) == 0 else { exit(7) }
        }
        say("700: \(try await store.load()?.token.value ?? "signed out")")
    }

    private static func code(of operation: () async throws -> Void) async -> String {
        do {
            try await operation()
            return "done"
        } catch {
            return (error as? TokenFileError)?.code.rawValue ?? "\(error)"
        }
    }

    static func say(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }
}
