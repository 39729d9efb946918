public import Foundation

/// A raw TCP server on the loopback interface that sends exactly what a test specifies, valid or not.
///
/// It has one thread for the listener and one for each connection. All end with the server, with the client, or after 10 minutes,
/// far beyond any client's own limit, even on a busy machine.
public final class LoopbackServer: Sendable {
    /// The server's reaction to a request.
    public enum Reply: Sendable {
        /// Send this text, then close the connection.
        case bytes(String)
        /// Send this text, then wait for the next request of the same connection.
        case kept(String)
        /// Send these bytes, text or not, then close the connection.
        case raw([UInt8])
        /// Send this text, then say nothing until the client closes the connection.
        case unfinished(String)
        /// Send this text, then the other byte by byte, ten each second.
        case dripping(String, String)
        /// Send this text, then these bytes repeatedly, until the client closes the connection.
        case endless(String, [UInt8])
        /// Send this text, then reset the connection.
        case reset(String)
    }

    /// The server's address with a path.
    public let url: URL

    /// Every request that arrived, complete.
    public let requests: AsyncStream<String>

    /// An element for each connection that ended.
    public let departures: AsyncStream<Void>

    private let listener: Int32

    /// Starts a server on a free port.
    public init(_ reply: @escaping @Sendable (_ request: String) -> Reply) throws {
        let (requests, arrived) = AsyncStream.makeStream(of: String.self)
        let (departures, left) = AsyncStream.makeStream(of: Void.self)
        let (listener, port) = try ServerSocket.listen()
        self.requests = requests
        self.departures = departures
        self.listener = listener
        guard let url = URL(string: "http://127.0.0.1:\(port)/token") else { throw ServerSocket.Failure(call: "listen") }
        self.url = url
        Thread.detachNewThread {
            while let connection = ServerSocket.accept(listener) {
                Thread.detachNewThread {
                    while let request = ServerSocket.readRequest(connection) {
                        arrived.yield(request)
                        guard Self.perform(reply(request), on: connection) else { break }
                    }
                    _ = close(connection)
                    left.yield()
                }
            }
            _ = close(listener)
        }
    }

    /// Starts a server that answers every request with the same bytes.
    public convenience init(answering text: String) throws {
        try self.init { _ in .bytes(text) }
    }

    /// Performs a reply; returns whether the connection is kept.
    private static func perform(_ reply: Reply, on connection: Int32) -> Bool {
        switch reply {
        case .kept(let text):
            ServerSocket.write(Array(text.utf8), to: connection)
            return true
        case .bytes(let text): ServerSocket.write(Array(text.utf8), to: connection)
        case .raw(let bytes): ServerSocket.write(bytes, to: connection)
        case .unfinished(let text):
            ServerSocket.write(Array(text.utf8), to: connection)
            ServerSocket.waitForEnd(connection)
        case .dripping(let text, let rest):
            ServerSocket.write(Array(text.utf8), to: connection)
            for byte in rest.utf8 {
                ServerSocket.write([byte], to: connection)
                guard !ServerSocket.isEnded(connection, afterMilliseconds: 100) else { return false }
            }
        case .endless(let text, let part):
            ServerSocket.write(Array(text.utf8), to: connection)
            while ServerSocket.write(part, to: connection) {}
        case .reset(let text):
            ServerSocket.write(Array(text.utf8), to: connection)
            ServerSocket.resetAtClose(connection)
        }
        return false
    }

    deinit {
        // Wakes the accepting thread, which closes the socket.
        _ = shutdown(listener, Int32(SHUT_RDWR))
    }
}
