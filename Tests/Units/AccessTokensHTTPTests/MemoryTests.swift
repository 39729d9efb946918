#if os(Linux)
import Foundation
import FoundationNetworking
import LoopbackServers
import TestBudgets
import Testing
import AccessTokensHTTP

/// The peak memory of bodies that are longer than their exchange's limit, each in its own process.
@Suite(.timeLimit(.minutes(10)))
struct MemoryTests {
    static let spaces = [UInt8](repeating: 0x20, count: 1 << 16)

    static func head(_ headers: String) -> String { "HTTP/1.1 200 OK\r\n\(headers)\r\n" }

    /// 512 MiB of spaces in 3.4 MB (RFC 1951 §3.2.6): one literal, then matches of 258 bytes in 13 bits each.
    static var gzip: [UInt8] {
        let beginning: [Bool] = [true, true, false] + bits(0x50, 8)
        let match = bits(0xC5, 8) + bits(0, 5)
        let bits = beginning + (1...16).flatMap { _ in match }
        let bytes = stride(from: 0, to: bits.count - 7, by: 8).map { start in
            bits[start..<start + 8].reversed().reduce(UInt8(0)) { byte, bit in byte << 1 | (bit ? 1 : 0) }
        }
        // Eight matches take 13 bytes, so the bytes repeat.
        let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3]
        return header + bytes[..<2] + (0..<260_000).flatMap { _ in bytes[2..<15] }
    }

    private static func bits(_ code: Int, _ count: Int) -> [Bool] { (0..<count).reversed().map { code >> $0 & 1 == 1 } }

    /// 512 MiB of spaces in 16 KB (RFC 8878 §3.1.1): blocks of 128 KiB in four bytes each.
    static var zstd: [UInt8] {
        [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38] + (0..<4_096).flatMap { _ in [0x02, 0x00, 0x10, 0x20] as [UInt8] }
    }

    static let replies: [(name: String, reply: @Sendable () -> LoopbackServer.Reply)] = [
        ("announced", { .endless(head("Content-Length: 100000000000\r\n"), spaces) }),
        ("endless", { .endless(head(""), spaces) }),
        ("gzip", { .raw(Array(head("Content-Encoding: gzip\r\n").utf8) + gzip) }),
        ("zstd", { .raw(Array(head("Content-Encoding: zstd\r\n").utf8) + zstd) }),
    ]

    // A sanitizer uses memory itself, which would be counted.
    #if compiler(>=6.3)  // exit tests that capture
    @Test(.thorough, arguments: replies.indices)
    func `an exchange whose body exceeds the limit ends before the body fills the memory`(index: Int) async {
        await #expect(processExitsWith: .success) { [index] in
            let (name, reply) = Self.replies[index]
            let bytes = reply()
            let server = try LoopbackServer { _ in bytes }
            var request = URLRequest(url: server.url)
            request.httpMethod = "POST"
            let before = try Self.memory("VmRSS")
            let (released, continuation) = AsyncStream.makeStream(of: Void.self)
            let exchange = Exchange(bodyLimit: 1 << 20, limits: TimeLimits(whole: .seconds(60)))
            let configuration = URLSessionConfiguration.forgetful(.seconds(60))
            NetworkSession(configuration: configuration, challenges: .returnToCaller, keeping: Belonging(continuation))
                .send(request, as: exchange)
            let failure = await #expect(throws: TransportError.self) { try await exchange.answer() }
            // A libcurl without zstd fails with another error.
            if case .tooLong = failure {} else { #expect(name == "zstd", "\(failure as Any)") }
            // The session's memory counts until it has ended.
            #expect(await released.first { true } != nil)
            let taken = try Self.memory("VmHWM") - before
            // 17 to 45 on a quiet machine.
            #expect(taken < 128, "\(name) took \(taken) MiB")
        }
    }
    #endif

    // Foundation buffers the body of a redirect itself, and copies all of it for each part that arrives. While the server is
    // faster, neither `suspend()` nor `cancel()` nor any other session of the process gets a turn. One took 37 MiB after 1 s, 56
    // after 5 s, 80 after 13 s and 103 after 25 s.
    #if compiler(>=6.3)  // exit tests that capture
    @Test(.thorough, arguments: [301, 302, 303, 307, 308])
    func `a redirect with an endless body ends with the time-out error`(status: Int) async {
        await #expect(processExitsWith: .success) { [status] in
            let head = "HTTP/1.1 \(status) X\r\nLocation: /\r\n\r\n"
            let server = try LoopbackServer { _ in .endless(head, Self.spaces) }
            let exchange = Exchange(bodyLimit: 1 << 20, limits: TimeLimits(whole: .seconds(1)))
            NetworkSession(configuration: .forgetful(.seconds(60)), challenges: .returnToCaller)
                .send(URLRequest(url: server.url), as: exchange)
            let failure = await #expect(throws: TransportError.self) { try await exchange.answer() }
            if case .timedOut = failure {} else { Issue.record("\(failure as Any)") }
        }
    }
    #endif

    @Test(.thorough) func `a redirect whose body exceeds the limit is an error`() async {
        await #expect(processExitsWith: .success) {
            let length = 8 << 20
            let head = "HTTP/1.1 302 X\r\nLocation: /\r\nContent-Length: \(length)\r\n\r\n"
            let bytes = Array(head.utf8) + [UInt8](repeating: 0x20, count: length)
            let server = try LoopbackServer { _ in .raw(bytes) }
            let exchange = Exchange(bodyLimit: 1 << 20, limits: TimeLimits(whole: .seconds(60)))
            NetworkSession(configuration: .forgetful(.seconds(60)), challenges: .returnToCaller)
                .send(URLRequest(url: server.url), as: exchange)
            let failure = await #expect(throws: TransportError.self) { try await exchange.answer() }
            if case .tooLong = failure {} else { Issue.record("\(failure as Any)") }
        }
    }

    /// A figure of `/proc/self/status`, in MiB.
    static func memory(_ name: String) throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix(name + ":") })
        return try #require(Int(line.filter(\.isNumber))) / 1_024
    }
}
#endif
