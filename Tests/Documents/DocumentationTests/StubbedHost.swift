import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A server inside the process, for the guides' examples: its session sends requests to it instead of the network.
final class StubbedHost: Sendable {
    struct Arrival: Sendable {
        let path: String
        let query: String
        let token: String?
        let body: String
    }

    struct Answer: Sendable {
        var status = 200
        var headers: [String: String] = [:]
        var body = ""

        static let invalidToken = Answer(status: 401, headers: ["WWW-Authenticate": "Bearer error=\"invalid_token\""])
    }

    let url: URL
    let session: URLSession
    private let arrived = Mutex<[Arrival]>([])
    private let answer: @Sendable (Arrival) -> Answer

    init(answer: @escaping @Sendable (Arrival) -> Answer) throws {
        self.answer = answer
        let name = "host-\(UUID().uuidString.lowercased()).example"
        guard let url = URL(string: "https://\(name)") else { throw URLError(.badURL) }
        self.url = url
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [StubbedProtocol.self]
        session = URLSession(configuration: configuration)
        StubbedProtocol.hosts.withLock { $0[name] = WeakHost(host: self) }
    }

    var arrivals: [Arrival] { arrived.withLock { $0 } }

    fileprivate func respond(to request: URLRequest) -> Answer {
        let header = request.value(forHTTPHeaderField: "Authorization")
        let arrival = Arrival(
            path: request.url?.path ?? "", query: request.url?.query ?? "",
            token: header?.replacingOccurrences(of: "Bearer ", with: ""),
            body: String(decoding: request.httpBody ?? Data(), as: UTF8.self))
        arrived.withLock { $0.append(arrival) }
        return answer(arrival)
    }
}

private struct WeakHost {
    weak let host: StubbedHost?
}

private final class StubbedProtocol: URLProtocol {
    static let hosts = Mutex<[String: WeakHost]>([:])

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        let host = Self.hosts.withLock { $0[request.url?.host ?? ""]?.host }
        guard let url = request.url, let answer = host?.respond(to: request),
            let response = HTTPURLResponse(
                url: url, statusCode: answer.status, httpVersion: "HTTP/1.1", headerFields: answer.headers)
        else {
            client?.urlProtocol(self, didFailWithError: URLError(.cannotFindHost))
            return
        }
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data(answer.body.utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}
