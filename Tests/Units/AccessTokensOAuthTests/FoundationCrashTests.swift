#if canImport(FoundationNetworking)
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import LoopbackServers
import TestBudgets
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The answers that crash the process on Linux, as `SECURITY.md` lists them, each in a process of its own.
///
/// If one of these fails, Foundation survives it now: correct the document.
@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct FoundationCrashTests {
    static let answers = [
        // swift-corelibs-foundation#5285.
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n",
        "HTTP/1.1 200 OK\r\nContent-Le",
        // A trailer (RFC 9112 §7.1.2).
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n",
        "HTTP/1.1 302 Go\r\nLocation: //[::1]/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 307 Go\r\nLocation: //a%2fb/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 303 Go\r\nLocation: //a%40b/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 308 Go\r\nLocation: //a%00b/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775296\r\n\r\n",
    ]

    #if arch(x86_64)
    static let trap = SIGILL
    #else
    static let trap = SIGTRAP
    #endif

    #if compiler(>=6.3)  // exit tests that capture
    @Test(arguments: answers.indices)
    func `an answer known to crash Foundation on Linux still crashes it`(index: Int) async {
        await #expect(processExitsWith: .signal(Self.trap)) { [index] in
            // Without a backtrace, which takes long and isn't needed.
            for number in [SIGILL, SIGTRAP] { signal(number, SIG_DFL) }
            let server = try LoopbackServer(answering: Self.answers[index])
            _ = try? await URLSessionTransport().send(TransportRequest(url: server.url, timeLimit: .seconds(60)))
        }
    }
    #endif
}
#endif
