import AccessTokens
import DataLoading
import Dispatch
import Foundation
import LoopbackServers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Sends so many requests, one after the other, for a tool that counts instructions; or answers them, in a process that isn't
/// counted.
@main enum Requests {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments == ["serve"] { serve() }
        guard arguments.count == 3, let ways = ways[arguments[0]], let count = Int(arguments[1]), count > 0,
            let url = URL(string: arguments[2])
        else {
            end(
                "usage: requests NAME COUNT URL, where NAME is one of: \(ways.keys.sorted().joined(separator: ", "));\n"
                    + "or: requests serve, which prints the URL")
        }
        // Not an asynchronous `main`: callgrind doesn't survive the end of the first thread.
        Task.detached {
            do {
                let send = try ways(url)
                for _ in 0..<count { try await send() }
                exit(0)
            } catch {
                end("\(error)")
            }
        }
        DispatchSemaphore(value: 0).wait()
    }

    private static func serve() -> Never {
        do {
            let server = try LoopbackServer { _ in .kept("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") }
            FileHandle.standardOutput.write(Data("\(server.url)\n".utf8))
            withExtendedLifetime(server) { DispatchSemaphore(value: 0).wait() }
            exit(0)
        } catch {
            end("\(error)")
        }
    }

    private static func end(_ problem: String) -> Never {
        FileHandle.standardError.write(Data("\(problem)\n".utf8))
        exit(1)
    }

    private typealias Send = @Sendable () async throws -> Void

    private static let token = AccessToken(String(repeating: "x", count: 900), lifetime: .seconds(3600))

    private static let ways: [String: @Sendable (URL) throws -> Send] = [
        "request": { url in
            let service = TokenService { _ in token }
            let factory = DataLoaderFactory(session: session(), tokens: try OriginTokens(service, for: [url]))
            return send(url, with: factory)
        },
        "request-without-token": { url in send(url, with: DataLoaderFactory(session: session())) },
        "request-urlsession": { url in byHand(url, URLSession(configuration: .ephemeral)) },
        "request-urlsession-bare": { url in byHand(url, session()) },
    ]

    private static func byHand(_ url: URL, _ session: URLSession) -> Send {
        {
            var request = URLRequest(url: url)
            request.allHTTPHeaderFields = ["Authorization": "Bearer \(token.value)"]
            try check(try await session.data(for: request).0)
        }
    }

    private static func send(_ url: URL, with factory: DataLoaderFactory) -> Send {
        let loader = factory.makeLoader()
        return { try check(try await loader.perform(Request(url: url)).body) }
    }

    /// Without cache and cookies, which our loaders never use.
    private static func session() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        (configuration.urlCache, configuration.httpCookieStorage) = (nil, nil)
        return URLSession(configuration: configuration)
    }

    private static func check(_ body: Data) throws {
        guard body == Data("ok".utf8) else { throw CancellationError() }
    }
}
