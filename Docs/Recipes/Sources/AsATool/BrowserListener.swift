import Foundation

/// Waits on the loopback interface for the browser to come back from a
/// sign-in (RFC 8252 §7.3).
struct BrowserListener: ~Copyable {
    let url: String
    private let listener: Int32
    /// Closed to end the thread that waits for connections.
    private let end: (reader: Int32, writer: Int32)

    init() throws {
        #if canImport(Darwin)
        let listener = socket(AF_INET, SOCK_STREAM, 0)
        #else
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(listener, $0, size) == 0
                    && getsockname(listener, $0, &size) == 0
            }
        }
        var ends: [Int32] = [-1, -1]
        guard isBound, listen(listener, 8) == 0, unsafe pipe(&ends) == 0
        else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
        self.listener = listener
        end = (ends[0], ends[1])
        let port = UInt16(bigEndian: address.sin_port)
        url = "http://127.0.0.1:\(port)/signed-in"
        // A browser that has closed its connection must not end the tool.
        _ = signal(SIGPIPE, SIG_IGN)
    }

    deinit { close(end.writer) }

    /// Returns the value that is read from the first request that has
    /// one; an error of the closure ends the wait.
    ///
    /// A request that a web page or another program sends has none.
    func read<Value: Sendable>(
        _ read: @escaping @Sendable (URL) throws -> Value?
    ) async throws -> Value {
        let (results, result) = AsyncThrowingStream<Value, any Error>
            .makeStream()
        Thread.detachNewThread { [listener, reader = end.reader] in
            defer { [listener, reader].forEach { close($0) } }
            while let connection = accept(listener, until: reader) {
                Thread.detachNewThread {
                    defer { close(connection) }
                    guard let url = requestedURL(connection) else {
                        return
                    }
                    do {
                        guard let value = try read(url) else {
                            return answer(
                                connection, "This isn't a sign-in.")
                        }
                        answer(connection, "You can close this window.")
                        result.yield(value)
                    } catch {
                        answer(connection, "The sign-in failed.")
                        result.finish(throwing: error)
                    }
                }
            }
        }
        for try await value in results { return value }
        throw CancellationError()
    }
}

private func accept(_ listener: Int32, until end: Int32) -> Int32? {
    var events = [listener, end].map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    while unsafe poll(&events, 2, -1) < 0, errno == EINTR {}
    guard events[1].revents == 0 else { return nil }
    let connection = accept(listener, nil, nil)
    return connection < 0 ? nil : connection
}

/// Reads the first line of a request, for five seconds at most.
private func requestedURL(_ connection: Int32) -> URL? {
    var limit = timeval(tv_sec: 5, tv_usec: 0)
    _ = unsafe setsockopt(
        connection, SOL_SOCKET, SO_RCVTIMEO, &limit,
        socklen_t(MemoryLayout<timeval>.size))
    var text = "", buffer = [UInt8](repeating: 0, count: 16_384)
    while !text.contains("\r\n\r\n"), text.utf8.count < buffer.count {
        let count = unsafe recv(connection, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        text += String(decoding: buffer[..<count], as: UTF8.self)
    }
    let words = text.prefix { !$0.isNewline }.split(separator: " ")
    guard words.count == 3, words[0] == "GET" else { return nil }
    return URL(string: "http://127.0.0.1\(words[1])")
}

private func answer(_ connection: Int32, _ sentence: String) {
    let text = """
        HTTP/1.1 200 OK\r
        Content-Type: text/plain; charset=utf-8\r
        Cache-Control: no-store\r
        Connection: close\r
        \r
        \(sentence)
        """
    let bytes = Array(text.utf8)
    _ = unsafe write(connection, bytes, bytes.count)
}

/// Opens a browser if there is one; the user has read the URL, too.
func openBrowser(_ url: URL) {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    #if os(macOS)
    process.arguments = ["open", url.absoluteString]
    #else
    process.arguments = ["xdg-open", url.absoluteString]
    #endif
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try? process.run()
}
