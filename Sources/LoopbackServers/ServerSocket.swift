import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The few calls of the operating system that a server needs.
enum ServerSocket {
    struct Failure: Error {
        let call: String
        let number = errno
    }

    static func listen() throws -> (socket: Int32, port: UInt16) {
        #if canImport(Glibc)
        let stream = Int32(SOCK_STREAM.rawValue)
        #else
        let stream = SOCK_STREAM
        #endif
        let listener = socket(AF_INET, stream, 0)
        guard listener >= 0 else { throw Failure(call: "socket") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                unsafe bind(listener, pointer, size) == 0 && getsockname(listener, pointer, &size) == 0
            }
        }
        #if canImport(Glibc)
        let isListening = isBound && Glibc.listen(listener, SOMAXCONN) == 0
        #else
        let isListening = isBound && Darwin.listen(listener, SOMAXCONN) == 0
        #endif
        guard isListening else { throw Failure(call: "listen") }
        return (listener, UInt16(bigEndian: address.sin_port))
    }

    static func accept(_ listener: Int32) -> Int32? {
        #if canImport(Glibc)
        let connection = Glibc.accept(listener, nil, nil)
        #else
        let connection = unsafe Darwin.accept(listener, nil, nil)
        #endif
        guard connection >= 0 else { return nil }
        // A second limit, far beyond the clients' own: a truncated response would crash a client's process.
        setLimit(connection, milliseconds: 600_000)
        return connection
    }

    private static func setLimit(_ connection: Int32, milliseconds: Int) {
        var limit = timeval(tv_sec: milliseconds / 1_000, tv_usec: .init(milliseconds % 1_000 * 1_000))
        let size = socklen_t(MemoryLayout<timeval>.size)
        _ = unsafe setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        _ = unsafe setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    /// Waits until the client has closed the connection or the time is over; returns whether the client has.
    static func isEnded(_ connection: Int32, afterMilliseconds milliseconds: Int) -> Bool {
        setLimit(connection, milliseconds: milliseconds)
        var byte: UInt8 = 0
        let count = unsafe recv(connection, &byte, 1, 0)
        return count == 0 || (count < 0 && errno != EAGAIN)
    }

    /// Makes closing the connection reset it.
    static func resetAtClose(_ connection: Int32) {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(connection, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Reads headers, and as many bytes as they announce; `nil` if the client has closed the connection.
    static func readRequest(_ connection: Int32) -> String? {
        var text = ""
        while let part = read(connection) {
            text += part
            // The greeting of TLS.
            if text.utf8.first == 0x16 { break }
            guard let headers = text.range(of: "\r\n\r\n") else { continue }
            if text[..<headers.lowerBound].lowercased().contains("transfer-encoding: chunked") {
                if text.hasSuffix("\r\n0\r\n\r\n") { break }
                continue
            }
            let length = text[..<headers.lowerBound].lowercased().components(separatedBy: "content-length: ").dropFirst().first
            if text[headers.upperBound...].utf8.count >= Int(length?.prefix(while: \.isNumber) ?? "0") ?? 0 { break }
        }
        return text.isEmpty ? nil : text
    }

    static func waitForEnd(_ connection: Int32) {
        while read(connection) != nil {}
    }

    private static func read(_ connection: Int32) -> String? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(connection, &buffer, buffer.count, 0)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    /// Sends bytes; returns whether all of them were accepted.
    @discardableResult
    static func write(_ bytes: [UInt8], to connection: Int32) -> Bool {
        #if canImport(Glibc)
        let flags = Int32(MSG_NOSIGNAL)
        #else
        let flags: Int32 = 0
        var on: Int32 = 1
        _ = unsafe setsockopt(connection, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
        #endif
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe send(connection, $0.baseAddress, $0.count, flags) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
