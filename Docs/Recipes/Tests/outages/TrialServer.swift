import AccessTokens
import Foundation

/// An authorization server that rotates refresh tokens, for the processes of a trial; its state and its ledger are files.
///
/// Each line of the ledger is `SECONDS PROCESS WORD...`: `began TOKEN`, `issued TOKEN`, `reuse TOKEN`, `dropped` or `served SINCE`.
struct TrialServer: TokenLoader {
    let folder: String
    let trial: Trial
    /// How long an exchange takes; the server decides after half of it.
    static let work = Duration.milliseconds(600)

    var isRepeatable: Bool { trial.isHarmless }

    struct Refused: TokenLoadFailure {
        var remedy: TokenServiceError.Remedy { .signIn }
    }
    /// The connection was closed.
    struct Dropped: Error {}

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        let presented = previous?.refreshToken.flatMap { Int($0) } ?? 0
        note("began \(presented)")
        try await Task.sleep(for: takes("slow") ? .seconds(15) : Self.work / 2)
        if takes("drop-request") {
            note("dropped")
            throw Dropped()
        }
        guard let token = try decide(presented) else { throw Refused() }
        try await Task.sleep(for: Self.work / 2)
        if takes("drop-answer") {
            note("dropped")
            throw Dropped()
        }
        return token
    }

    /// Signs a user in.
    func signIn() throws -> AccessToken {
        try Data("1 0 0".utf8).write(to: file("state"))
        return token(1)
    }

    func token(_ number: Int) -> AccessToken {
        AccessToken("access-\(number)", lifetime: .seconds(3), refreshToken: trial.isHarmless ? nil : "\(number)")
    }

    private func decide(_ presented: Int) throws -> AccessToken? {
        let lock = unsafe open(file("lock").path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        defer { close(lock) }
        guard flock(lock, LOCK_EX) == 0 else { throw CocoaError(.fileLocking) }
        let state = try String(contentsOf: file("state"), encoding: .utf8).split(separator: " ").compactMap { Double($0) }
        var (newest, last, time) = (Int(state[0]), Int(state[1]), state[2])
        if presented == newest || trial.isHarmless {
            (last, time) = (newest, Self.now)
        } else if presented != last || Self.now - time > Double(trial.serverGrace) {
            note("reuse \(presented)")
            return nil
        }
        newest += 1
        try Data("\(newest) \(last) \(time)".utf8).write(to: file("state"))
        note("issued \(newest)")
        return token(newest)
    }

    /// Whether something is to go wrong, which it does once.
    private func takes(_ fault: String) -> Bool { unlink(file(fault).path) == 0 }

    func file(_ name: String) -> URL { URL(fileURLWithPath: folder).appending(path: name) }

    static var now: Double { Double(clock_gettime_nsec(CLOCK_MONOTONIC)) / 1e9 }

    func note(_ text: String) {
        let ledger = unsafe open(file("ledger").path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(ledger) }
        let line = Array("\(Self.now) \(getpid()) \(text)\n".utf8)
        _ = unsafe write(ledger, line, line.count)
    }
}

private func clock_gettime_nsec(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
