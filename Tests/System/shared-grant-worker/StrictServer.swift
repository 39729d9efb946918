import AccessTokens
import Foundation

/// A strict server: a refresh token that is presented twice ends the session.
///
/// Its ledger is a file that outlives the clients, with a line `PRESENTED ANSWER PROCESS NEWEST` for each exchange. The answer is the
/// number of the token that it issues, or `reuse`; `signin` is presented to begin a session. Only the last line is ever read.
struct StrictServer: TokenLoader {
    let path: String

    struct Refused: TokenLoadFailure {
        var remedy: TokenServiceError.Remedy { .signIn }
    }

    @concurrent func loadToken(replacing previous: AccessToken?) async throws -> AccessToken {
        guard let presented = previous?.refreshToken, let issued = try record(presented) else { throw Refused() }
        return token(issued)
    }

    func signIn() throws -> AccessToken {
        guard let issued = try record("signin") else { throw Refused() }
        return token(issued)
    }

    private func token(_ number: Int) -> AccessToken {
        AccessToken("access-\(number)", lifetime: .milliseconds(40), refreshToken: "\(number)")
    }

    /// Decides an exchange under the ledger's lock; `nil`: refused.
    private func record(_ presented: String) throws -> Int? {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        defer { try? file.close() }
        guard flock(file.fileDescriptor, LOCK_EX) == 0 else { throw CocoaError(.fileWriteUnknown) }
        // Longer than any line.
        let size = try file.seekToEnd()
        try file.seek(toOffset: size > 100 ? size - 100 : 0)
        let words = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self).split(separator: "\n").last?
            .split(separator: " ")
        let isGood = presented == "signin" || words.map { presented == $0[1] } ?? false
        let newest = words.flatMap { Int($0[3]) } ?? 0, issued = newest + 1
        let process = ProcessInfo.processInfo.processIdentifier
        try file.write(
            contentsOf: Data("\(presented) \(isGood ? "\(issued)" : "reuse") \(process) \(isGood ? issued : newest)\n".utf8))
        return isGood ? issued : nil
    }
}
