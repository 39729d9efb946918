#if URLSession && canImport(FoundationNetworking)
import Foundation
import TokenServiceConcurrency

/// One request without TLS over its own socket, for servers whose answers crash Foundation on Linux.
///
/// It speaks HTTP/1.0, so that the server neither chunks its answer nor adds a trailer, which crashes Foundation (etcd's gateway
/// adds one to every error). It uses no proxy. It waits for the network on its own thread, never on one of the pool.
package final class PlainExchange: Sendable {
    private struct State {
        var isOver = false
        var socket: Int32?
    }

    /// The longest header that is accepted; servers send about a kilobyte.
    private static let headLimit = 1 << 16

    private let state = Lock(State())
    private let result = SingleResult<TransportResponse>()
    private let bodyLimit: Int

    private init(bodyLimit: Int) {
        self.bodyLimit = bodyLimit
    }

    /// Sends a request, once, and returns the answer.
    ///
    /// - Parameter request: Its URL begins with `http`; its headers contain everything except `Host` and `Content-Length`.
    /// - Throws: ``TransportError``, or `CancellationError` promptly when the calling task is cancelled.
    package static func answer(to request: TransportRequest) async throws -> TransportResponse {
        let exchange = PlainExchange(bodyLimit: request.maximumBodySize)
        let watch = TimeLimits(whole: request.timeLimit).watch { exchange.end(with: TransportError.timedOut()) }
        defer { watch.end() }
        Thread.detachNewThread { exchange.run(request) }
        return try await withTaskCancellationHandler {
            try await exchange.result.value()
        } onCancel: {
            exchange.end(with: CancellationError())
        }
    }

    /// Ends the exchange early; a thread that waits for the network returns at once.
    private func end(with error: any Error) {
        result.complete(with: .failure(error))
        state.withLock { state in
            state.isOver = true
            if let socket = state.socket { Socket.wake(socket) }
        }
    }

    private func run(_ request: TransportRequest) {
        defer {
            let socket = state.withLock { state in
                defer { state.socket = nil }
                return state.socket
            }
            if let socket { Socket.end(socket) }
        }
        result.complete(with: Result { try exchange(request) })
    }

    private func exchange(_ request: TransportRequest) throws -> TransportResponse {
        guard let origin = Origin(request.url), origin.scheme == "http",
            let message = Self.message(request, origin)
        else { throw TransportError.invalidConfiguration("the request can't be written") }
        let socket = try connect(to: origin)
        try Socket.send(message, to: socket)
        var received = Data()
        while let part = try Socket.receive(from: socket) {
            received += part
            guard received.count <= bodyLimit + Self.headLimit else { throw TransportError.tooLong }
        }
        let answer = try Self.answer(in: received)
        guard answer.body.count <= bodyLimit else { throw TransportError.tooLong }
        return answer
    }

    private func connect(to origin: Origin) throws -> Int32 {
        var failure = TransportError.notSent("the host has no address")
        for address in try Socket.addresses(of: origin.host, port: origin.port) {
            let socket = try Socket.open(address)
            let isOver = state.withLock { state in
                state.socket = socket
                return state.isOver
            }
            if isOver { throw TransportError.notSent("it was ended") }
            guard let problem = Socket.connect(socket, to: address) else { return socket }
            failure = .notSent(problem)
            state.withLock { $0.socket = nil }
            Socket.end(socket)
        }
        throw failure
    }

    /// Returns the request's bytes; `nil` if a part could be mistaken for another request.
    private static func message(_ request: TransportRequest, _ origin: Origin) -> Data? {
        guard let parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true) else { return nil }
        let target =
            (parts.percentEncodedPath.isEmpty ? "/" : parts.percentEncodedPath)
            + (parts.percentEncodedQuery.map { "?\($0)" } ?? "")
        let host = origin.host.contains(":") ? "[\(origin.host)]" : origin.host
        var lines = ["\(request.method) \(target) HTTP/1.0", "Host: \(host):\(origin.port)"]
        lines += ["Content-Length: \(request.body.count)", "Connection: close"]
        lines += request.headers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
        guard !lines.contains(where: { $0.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F } }) else { return nil }
        return Data((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + request.body
    }

    /// Reads an answer that ended with its connection.
    static func answer(in received: Data) throws(TransportError) -> TransportResponse {
        func require(_ condition: Bool, _ detail: String) throws(TransportError) {
            guard condition else { throw .connectionLost(detail) }
        }
        guard let end = received.firstRange(of: Data("\r\n\r\n".utf8)) else {
            throw .connectionLost(received.isEmpty ? "there is no answer" : "the answer's header is cut off")
        }
        let lines = String(decoding: received[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let first = (lines.first ?? "").split(separator: " ", omittingEmptySubsequences: false)
        guard first.count >= 2, first[0].hasPrefix("HTTP/1."), first[1].utf8.count == 3, let status = Int(first[1]), status >= 200
        else { throw .connectionLost("the answer is not HTTP") }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            if parts.count == 2 { headers[parts[0]] = parts[1] }
        }
        let body = Data(received[end.upperBound...])
        try require(headers.header("Transfer-Encoding") == nil, "the answer is chunked, which HTTP/1.0 doesn't have")
        if let length = headers.header("Content-Length") { try require(Int(length) == body.count, "the answer is cut off") }
        return TransportResponse(status: status, headers: headers, body: body)
    }
}
#endif
