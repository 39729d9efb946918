import Foundation
import Testing

/// A server that answers whatever it reads with the next of its texts, and then says nothing.
final class AnsweringServer: Sendable {
    let port: Int32
    private let listener: Int32

    init(_ answers: [[UInt8]]) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = unsafe inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(listener, $0, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &size) == 0
            }
        }
        try #require(isBound)
        port = Int32(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread {
            let connection = accept(listener, nil, nil)
            var buffer = [UInt8](repeating: 0, count: 65536)
            for answer in answers {
                guard unsafe read(connection, &buffer, buffer.count) > 0 else { break }
                _ = unsafe write(connection, answer, answer.count)
            }
            while unsafe read(connection, &buffer, buffer.count) > 0 {}
            close(connection)
        }
    }

    deinit {
        // Wakes the accepting thread, too.
        _ = shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }
}
