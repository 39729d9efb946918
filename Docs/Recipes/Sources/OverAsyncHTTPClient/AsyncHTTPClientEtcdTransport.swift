import AccessTokensEtcd
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

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
        } catch  where HTTPClient.isFromConnecting(error) {
            throw EtcdError.notSent("no connection", underlying: error)
        }
    }
}
