import AccessTokensEtcd
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

struct AsyncHTTPClientEtcdTransport: EtcdTransport {
    let client: HTTPClient  // made with the configuration `forTokens`

    @concurrent func send(
        _ request: EtcdRequest
    ) async throws -> EtcdResponse {
        var message = HTTPClientRequest(url: request.url.absoluteString)
        message.method = .POST
        for (name, value) in request.headers {
            message.headers.add(name: name, value: value)
        }
        message.body = .bytes(ByteBuffer(bytes: request.body))
        do {
            let (answer, body) = try await message.send(
                over: client, within: request.timeLimit,
                size: EtcdResponse.maximumBodySize)
            return EtcdResponse(
                status: Int(answer.status.code), body: body)
        } catch  where Self.isFromConnecting(error) {
            throw EtcdError.notSent("no connection", underlying: error)
        }
    }

    /// The name can't be resolved, no address accepts a connection, or none
    /// does in time.
    private static func isFromConnecting(_ error: any Error) -> Bool {
        error is NIOConnectionError
            || (error as? IOError)?.errnoCode == ECONNREFUSED
            || error as? HTTPClientError == .connectTimeout
    }
}
