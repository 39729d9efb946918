import AccessTokensHTTP
import AccessTokensOAuth
import AsyncHTTPClient
import Foundation
import LoopbackServers

@testable import OverAsyncHTTPClient

/// Measures what answers of a hostile server cost a program, with each transport in a process of its own, and prints a table.
@main
enum Table {
    typealias Row = (name: String, reply: LoopbackServer.Reply)

    static let spaces = [UInt8](repeating: 0x20, count: 1 << 16)

    static func ok(_ headers: String) -> String { "HTTP/1.1 200 OK\r\n\(headers)\r\n" }

    static func redirect(to target: String) -> LoopbackServer.Reply {
        .bytes("HTTP/1.1 302 Go\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n")
    }

    static let rows: [Row] = [
        ("a token", .bytes(ok("Content-Length: 2\r\n") + "{}")),
        ("no answer for 3 s", .unfinished("")),
        ("a body that never ends, byte by byte", .dripping(ok("Content-Length: 500\r\n"), String(repeating: " ", count: 500))),
        ("the connection ends between two header lines", .bytes("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n")),
        ("a chunked answer with a trailer", .bytes(ok("Transfer-Encoding: chunked\r\n") + "2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n")),
        ("a redirect to `//[::1]/`", redirect(to: "//[::1]/")),
        ("a redirect to `//a%2fb/`", redirect(to: "//a%2fb/")),
        ("`Content-Length: 9223372036854775296`", .bytes(ok("Content-Length: 9223372036854775296\r\n"))),
        ("20,000 header lines", .bytes(ok(String(repeating: "a:\r\n", count: 20_000) + "Content-Length: 0\r\n"))),
        ("a body without end", .endless(ok(""), spaces)),
        ("a redirect's body without end", .endless("HTTP/1.1 302 Go\r\nLocation: /\r\n\r\n", spaces)),
        ("512 MiB in 0.5 MB of gzip", .raw(Array(ok("Content-Encoding: gzip\r\n").utf8) + gzip)),
    ]

    static let gzip: [UInt8] = {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", "head -c 536870912 /dev/zero | gzip"]
        process.standardOutput = output
        return (try? process.run()).map { Array(output.fileHandleForReading.readDataToEndOfFile()) } ?? []
    }()

    static func main() async throws {
        let arguments = CommandLine.arguments
        if arguments.count == 4 { return try await measure(arguments[1], URL(string: arguments[2]), URL(string: arguments[3])) }
        let columns = ["ends", "CPU", "memory", "meanwhile"].joined(separator: " | ")
        print("| the server sends | `URLSession`: \(columns) | AsyncHTTPClient: \(columns) |")
        print("|---|---|---:|---:|---:|---|---:|---:|---:|")
        for row in rows {
            print("| \(row.name) | \(try run("URLSession", row)) | \(try run("AsyncHTTPClient", row)) |")
        }
        try printSummary()
    }

    /// The effects of all faults of the tests, and of the rows above, on each transport.
    static func printSummary() throws {
        let faults = Fault.ofConnections + Fault.ofAnswers + Fault.ofLifetimes
        let all = rows + faults.map { ($0.testDescription, $0.reply) }
        print(
            "\n| \(all.count) answers | ends of the process | other requests held up | most CPU | most memory |\n|---|---:|---:|---:|---:|"
        )
        for transport in ["URLSession", "AsyncHTTPClient"] {
            let results = try all.map { try run(transport, $0).components(separatedBy: " | ") }
            let complete = results.filter { $0.count == 4 && !$0[0].contains("process") }
            func figures(_ column: Int) -> [Double] {
                complete.map { Double($0[column].prefix { $0.isNumber || $0 == "." }) ?? .infinity }
            }
            let late = figures(3).count { $0 > 1 }
            print(
                "| \(transport) | \(all.count - complete.count) | \(late) | \(figures(1).max() ?? 0) s | \(Int(figures(2).max() ?? 0)) MiB |"
            )
        }
    }

    /// Runs an exchange in a process; returns how it ended and what it took.
    static func run(_ transport: String, _ row: Row) throws -> String {
        let hostile = try LoopbackServer { _ in row.reply }
        let good = try LoopbackServer(answering: ok("Content-Length: 2\r\n") + "{}")
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(filePath: CommandLine.arguments[0])
        process.arguments = [transport, hostile.url.absoluteString, good.url.absoluteString]
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        // No backtrace, which takes long.
        process.environment = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return process.terminationReason == .uncaughtSignal ? "**the process ends** | | |" : text
    }

    /// Sends a request to the hostile server, and in the middle of that one to the other.
    static func measure(_ name: String, _ hostile: URL?, _ good: URL?) async throws {
        guard let hostile, let good else { return }
        let client = HTTPClient(configuration: .forTokens)
        let transport: any TokenTransport =
            name == "URLSession"
            ? URLSessionTransport() : AsyncHTTPClientTransport(client: client)
        async let other = {
            try await Task.sleep(for: .seconds(0.3))
            return try await ContinuousClock().measure {
                _ = try await transport.send(TransportRequest(url: good, timeLimit: .seconds(3)))
            }
        }()
        var end = "answer"
        let time = await ContinuousClock().measure {
            do {
                end += " \(try await transport.send(TransportRequest(url: hostile, timeLimit: .seconds(3))).status)"
            } catch {
                end = "error"
            }
        }
        let meanwhile = (try? await other).map { "\(seconds($0)) s" } ?? "fails"
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }?.filter(\.isNumber)
        let processor = Duration.seconds(Double(clock()) / Double(CLOCKS_PER_SEC))
        let memory = (peak.flatMap { Int($0) } ?? 0) / 1_024
        print("\(end) after \(seconds(time)) s | \(seconds(processor)) s | \(memory) MiB | \(meanwhile)", terminator: "")
        exit(0)
    }

    static func seconds(_ duration: Duration) -> String {
        (duration / .seconds(1)).formatted(.number.precision(.fractionLength(1)).locale(Locale(identifier: "en")))
    }
}
