import Foundation
import Testing

/// A connection to a Unix socket.
final class UnixSocket: Sendable {
    struct Failure: Error {}

    fileprivate let number: Int32

    fileprivate init(_ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ path: String) throws {
        number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let number = number
        let isDone = unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe call(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        guard isDone else { throw Failure() }
    }

    convenience init(connectedTo path: String) throws { try unsafe self.init(connect, path) }

    func write(_ text: String) {
        let bytes = Array(text.utf8)
        _ = unsafe send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    deinit { close(number) }
}

/// A server at a Unix socket that answers its first connection with a text, and then is no longer there.
final class UnixServer: Sendable {
    init(at path: String, answer: String) throws {
        _ = unsafe unlink(path)
        let listener = try unsafe UnixSocket(bind, path)
        try #require(listen(listener.number, 1) == 0)
        let bytes = Array(answer.utf8)
        Thread.detachNewThread {
            let connection = accept(listener.number, nil, nil)
            _ = shutdown(listener.number, Int32(SHUT_RDWR))
            var buffer = [UInt8](repeating: 0, count: 65536)
            _ = unsafe read(connection, &buffer, buffer.count)
            _ = unsafe send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            close(connection)
        }
    }
}
