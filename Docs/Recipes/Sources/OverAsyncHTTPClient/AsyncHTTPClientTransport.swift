import AccessTokensHTTP
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

struct AsyncHTTPClientTransport: TokenTransport {
    let client: HTTPClient  // made with the configuration `forTokens`

    @concurrent func send(
        _ request: TransportRequest
    ) async throws -> TransportResponse {
        var message = HTTPClientRequest(url: request.url.absoluteString)
        message.method = HTTPMethod(rawValue: request.method)
        for (name, value) in request.headers {
            message.headers.add(name: name, value: value)
        }
        message.body = .bytes(ByteBuffer(bytes: request.body))
        do {
            let (answer, body) = try await message.send(
                over: client, within: request.timeLimit,
                size: request.maximumBodySize)
            let headers = answer.headers.map { ($0.name, $0.value) }
            return TransportResponse(
                status: Int(answer.status.code),
                headers: Dictionary(headers) { "\($0), \($1)" },
                body: body)
        } catch  where HTTPClient.isFromConnecting(error) {
            throw TransportError.notSent(
                "no connection", underlying: error)
        } catch let error as HTTPClientError
            where error == .deadlineExceeded
        {
            throw TransportError.timedOut(underlying: error)
        } catch is NIOTooManyBytesError {
            throw TransportError.tooLong
        }
    }
}

extension HTTPClient {
    /// The name can't be resolved, no address accepts a connection, none
    /// does in time, or the handshake of TLS fails: nothing was sent.
    static func isFromConnecting(_ error: any Error) -> Bool {
        switch error {
        case is NIOConnectionError, NIOSSLError.handshakeFailed: true
        case let error as NIOSSLExtraError:
            error == .failedToValidateHostname
        case let error as IOError: error.errnoCode == ECONNREFUSED
        case let error as HTTPClientError:
            [.connectTimeout, .tlsHandshakeTimeout].contains(error)
        default: false
        }
    }
}

extension HTTPClient.Configuration {
    /// Follows no redirect, inflates nothing, and uses no connection
    /// twice.
    ///
    /// A server may be about to close one that is kept. With HTTP/2 such
    /// a client answers nothing more after a request was cancelled.
    static var forTokens: Self {
        var configuration = Self(
            redirectConfiguration: .disallow, decompression: .disabled)
        configuration.httpVersion = .http1Only
        configuration.maximumUsesPerConnection = 1
        configuration.connectionPool.retryConnectionEstablishment = false
        return configuration
    }
}

extension HTTPClientRequest {
    /// Sends the request once and receives the whole answer.
    ///
    /// A deadline of `execute` ends with the header. This one is for the
    /// body, too.
    func send(
        over client: HTTPClient, within limit: Duration, size: Int
    ) async throws -> (HTTPClientResponse, Data) {
        try await withThrowingTaskGroup { group in
            defer { group.cancelAll() }
            group.addTask {
                let answer = try await client.execute(
                    self, deadline: .distantFuture)
                let body = try await answer.body.collect(upTo: size)
                return (answer, Data(body.readableBytesView))
            }
            group.addTask {
                try await Task.sleep(for: limit)
                throw HTTPClientError.deadlineExceeded
            }
            do {
                guard let first = try await group.next() else {
                    throw CancellationError()
                }
                return first
            } catch {
                try Task.checkCancellation()  // if so, that is the reason
                throw error
            }
        }
    }
}
