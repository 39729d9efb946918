import AccessTokens
import Foundation

/// Where the broker of one user's programs listens.
struct BrokerDirectory {
    let path: String
    var socket: String { path + "/socket" }

    /// Creates the directory unless it exists.
    ///
    /// - Parameter path: An absolute path on a local disk, in a directory
    ///   that no other user can write to.
    init(path: String) throws {
        self.path = path
        // A broker's working directory is another one.
        guard path.hasPrefix("/") else {
            throw BrokerError("\(path) must be an absolute path")
        }
        let limit = MemoryLayout.size(ofValue: sockaddr_un().sun_path)
        guard socket.utf8.count < limit else {
            throw BrokerError("\(socket): longer than \(limit - 1) bytes")
        }
        if unsafe mkdir(path, 0o700) != 0, errno != EEXIST {
            throw BrokerError("\(path): \(Self.reason)")
        }
        try check()
    }

    /// Throws unless the directory is this user's alone.
    func check() throws {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            throw BrokerError("\(path): \(Self.reason)")
        }
        guard status.st_mode & S_IFMT == S_IFDIR,
            status.st_uid == getuid(),
            status.st_mode & 0o077 == 0
        else {
            throw BrokerError(
                "\(path) must be your directory, with mode 700")
        }
    }

    /// Takes the lock that a broker holds as long as it lives.
    ///
    /// Its file has the name of the session.
    ///
    /// - Returns: `nil` if another process holds it all that time.
    func lock(
        waiting limit: Duration = .zero
    ) async throws -> FileHandle? {
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe open(path + "/lock", flags, 0o600)
        guard number >= 0 else {
            throw BrokerError("\(path)/lock: \(Self.reason)")
        }
        let file = FileHandle(
            fileDescriptor: number, closeOnDealloc: true)
        let end = ContinuousClock.now + limit
        while flock(number, LOCK_EX | LOCK_NB) != 0 {
            guard .now < end else { return nil }
            try await Task.sleep(for: .milliseconds(20))
        }
        return file
    }

    /// Begins a session; returns `false` if a broker runs, which has to
    /// be signed out first.
    func signIn(
        with token: AccessToken, in store: some TokenStore
    ) async throws -> Bool {
        guard let lock = try await lock(waiting: .seconds(60)) else {
            return false
        }
        defer { withExtendedLifetime(lock) {} }
        // The name first: a client of the last session gets no token.
        try lock.truncate(atOffset: 0)
        try lock.write(contentsOf: Data(UUID().uuidString.utf8))
        try await store.save(StoredToken(token, received: .now))
        return true
    }

    private static var reason: String {
        unsafe String(cString: strerror(errno))
    }
}

struct BrokerError: TokenLoadFailure, CustomStringConvertible {
    let description: String
    let remedy: TokenServiceError.Remedy

    init(
        _ text: String,
        _ remedy: TokenServiceError.Remedy = .programChange
    ) {
        description = text
        self.remedy = remedy
    }
}

/// Why the broker has no token, as it tells its clients.
struct BrokerAnswer: TokenLoadFailure, Codable, CustomStringConvertible {
    let logCode: String?
    let help: String
    let seconds: Int?

    init(_ error: TokenServiceError) {
        logCode = error.logCode
        help = error.remedy.description
        let wait = error.retryAt?.timeIntervalSinceNow ?? 0
        seconds = wait > 0 ? Int(wait.rounded(.up)) : nil
    }

    var remedy: TokenServiceError.Remedy {
        let all: [TokenServiceError.Remedy] = [
            .signIn, .signInOrRegistration, .clientRegistration,
            .programChange,
        ]
        return all.first { $0.description == help } ?? .retry
    }
    var description: String { "no token: \(logCode ?? help)" }
    var retryAfter: Duration? { seconds.map { .seconds($0) } }
    var mayBeUnderWay: Bool { false }
}
