import AccessTokens
import AccessTokensSharedFiles
import AccessTokensSharing
import Foundation

/// Asks a service that shares its grant for tokens, again and again, until it is killed or the session has ended.
///
/// Arguments: the shared file and the server's ledger. With a third one it signs in and exits. Without a ledger it performs the
/// operations on the shared file that it reads.
@main
struct Worker {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 2 else { return await obey(SharedFileTokenStore(path: arguments[1])) }
        let server = StrictServer(path: arguments[2])
        let policy = RefreshPolicy(loadTimeout: .milliseconds(600))
        let tokens = TokenService(
            policy: policy, sharedStore: SharedFileTokenStore(path: arguments[1]),
            sharing: TokenSharing(transportLimit: .milliseconds(400)), loader: server)
        if arguments.count > 3 {
            let change = await tokens.replace(with: try server.signIn())
            exit(change.storeFailure == nil ? 0 : 4)
        }
        while true {
            do {
                _ = try await tokens.retrieveToken()
            } catch let error as TokenServiceError where error.remedy == .signIn {
                exit(3)
            } catch {
                // A pause after a failure, or a wait for another process's mark.
            }
            try await Task.sleep(for: .milliseconds(Int.random(in: 1...10)))
        }
    }
}

/// Performs the operations that it reads on a store, and writes the outcomes.
///
/// It reads one operation a line, `load` or `swap REVISION CONTENT`, and writes `none`, `record REVISION CONTENT`, `done
/// REVISION` or `error`. `-` stands for no revision.
private func obey(_ store: SharedFileTokenStore) async {
    func text(_ record: SharedRecord?) -> String {
        record.map { "record \($0.revision.text) \(String(decoding: $0.bytes, as: UTF8.self))" } ?? "none"
    }
    while let words = readLine()?.split(separator: " ").map({ String($0) }) {
        let answer: String
        do {
            if words.count == 3 {
                let revision = words[1] == "-" ? nil : SharedRecord.Revision(words[1])
                answer =
                    switch try await store.swap(Data(words[2].utf8), ifAt: revision) {
                    case .done(let revision): "done \(revision.text)"
                    case .conflict(let record): text(record)
                    }
            } else {
                answer = text(try await store.load())
            }
        } catch {
            answer = "error"
        }
        FileHandle.standardOutput.write(Data((answer + "\n").utf8))
    }
}
