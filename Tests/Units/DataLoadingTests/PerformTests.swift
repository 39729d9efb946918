import AccessTokens
import AccessTokensTesting
import DataLoading
import Foundation
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct PerformTests {
    @Test func `a request arrives as it was made, with the current token`() async throws {
        let server = try ResourceServer()
        let request = Request(
            url: server.url("movies"), method: "POST", headers: ["X-Mark": "a b"],
            query: [URLQueryItem(name: "q", value: "a+b & c=ü"), URLQueryItem(name: "flag", value: nil)],
            body: .data(Data("hello".utf8)))
        let response = try await server.loader().perform(request)
        #expect(response.status == 200)
        let arrival = try #require(server.arrivals.all.first)
        #expect(arrival.line == "POST /movies?q=a%2Bb%20%26%20c%3D%C3%BC&flag HTTP/1.1")
        #expect(arrival.header("X-Mark") == "a b")
        #expect(arrival.token == "access-1" && arrival.body == "hello")
    }

    @Test func `parameters are added to the query that the URL has`() async throws {
        let server = try ResourceServer()
        let url = try #require(URL(string: "/movies?a=%2F1#part", relativeTo: server.url))
        _ = try await server.loader().perform(Request(url: url, query: [URLQueryItem(name: "b", value: "2")]))
        #expect(server.arrivals.all.first?.path == "/movies?a=%2F1&b=2")
    }

    @Test func `the answer has its status, headers, body and URL`() async throws {
        let server = try ResourceServer { _ in .bytes("HTTP/1.1 201 Made\r\nX-Mark: y\r\nContent-Length: 2\r\n\r\nhi") }
        let response = try await server.loader().perform(Request(url: server.url("movies")))
        #expect(response.status == 201 && response.header("x-mark") == "y")
        #expect(response.body == Data("hi".utf8) && response.url == server.url("movies"))
    }

    @Test func `a value is decoded from the answer`() async throws {
        let server = try ResourceServer { _ in ResourceServer.ok(#"["Alien","Brazil"]"#) }
        let loader = try server.loader()
        #expect(try await loader.perform(Request(url: server.url), as: [String].self) == ["Alien", "Brazil"])
        let error = await #expect(throws: DataLoadingError.self) {
            try await loader.perform(Request(url: server.url), as: [Int].self)
        }
        #expect(error?.code == .undecodable && error?.underlying is DecodingError)
        #expect(error?.response?.body == Data(#"["Alien","Brazil"]"#.utf8))
        #expect(error?.description.contains("Alien") == false)
    }

    @Test(arguments: [
        ("file:///etc/passwd", "GET", [:], nil), ("https://me:secret@example.com/", "GET", [:], nil),
        ("https:///path", "GET", [:], nil),
        ("http://127.0.0.1/", "G T", [:], nil), ("http://127.0.0.1/", "", [:], nil), ("http://127.0.0.1/", "GET", ["": "x"], nil),
        ("http://127.0.0.1/", "GET", ["X\r\nY": "x"], nil), ("http://127.0.0.1/", "GET", ["X": "x\r\nAuthorization: y"], nil),
        ("http://127.0.0.1/", "GET", ["X-Key": "x", "x-key": "y"], nil), ("http://127.0.0.1/", "GET", [:], "body"),
        ("http://127.0.0.1/", "HEAD", [:], "body"), ("http://127.0.0.1/", "get", [:], "body"),
        ("http://127.0.0.1/", "post", [:], "body"),
        ("http://127.0.0.1/", "Post", [:], nil), ("http://127.0.0.1/", "patch", [:], nil),
    ])
    func `an invalid request is an error, and nothing is sent`(
        url: String, method: String, headers: [String: String], body: String?
    ) async throws {
        let request = Request(
            url: try #require(URL(string: url)), method: method, headers: headers,
            body: body.map { .data(Data($0.utf8)) })
        let error = await #expect(throws: DataLoadingError.self) {
            try await DataLoaderFactory().makeLoader().perform(request)
        }
        #expect(error?.code == .invalidRequest)
        #expect(error?.description.contains("secret") == false)
    }

    @Test(arguments: [204, 299, 200]) func `a success status returns the answer`(status: Int) async throws {
        let server = try ResourceServer { _ in .bytes("HTTP/1.1 \(status) X\r\nContent-Length: 0\r\n\r\n") }
        #expect(try await server.loader().perform(Request(url: server.url)).status == status)
    }

    @Test(arguments: [300, 304, 400, 404, 403, 500, 503])
    func `any other status is an error that contains the answer`(status: Int) async throws {
        let server = try ResourceServer { _ in ResourceServer.status(status, body: status == 304 ? "" : "reason") }
        let error = await #expect(throws: DataLoadingError.self) {
            try await server.loader().perform(Request(url: server.url))
        }
        #expect(error?.code == .unacceptableStatus && error?.response?.status == status)
        #expect(error?.description == "The server answered with status \(status) from 127.0.0.1.")
        #expect(server.arrivals.all.count == 1, "nothing is retried")
    }

    @Test func `loaders of one factory get their own answers, two hundred at once`() async throws {
        let server = try ResourceServer()
        let factory = try server.factory()
        try await withThrowingTaskGroup { group in
            for number in 1...200 {
                group.addTask {
                    let response = try await factory.makeLoader().perform(Request(url: server.url("\(number)")))
                    #expect(String(decoding: response.body, as: UTF8.self) == "/\(number)")
                }
            }
            try await group.waitForAll()
        }
        #expect(server.authorizationServer.tokensIssued == 1)
    }
}
