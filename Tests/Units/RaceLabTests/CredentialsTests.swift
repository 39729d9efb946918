import Foundation
import Testing

@testable import race_lab

@Suite struct `The environment's credentials` {
    @Test(arguments: [[:], ["CLIENT_SECRET": ""]])
    func `a missing client secret in the environment is an error that says how to put it there`(_ environment: [String: String])
        throws
    {
        #expect(try Credentials.secret(in: ["CLIENT_SECRET": "s"]) == "s")
        let error = try #require(throws: UsageError.self) { try Credentials.secret(in: environment) }
        #expect(error.description.hasPrefix("CLIENT_SECRET is not set"))
        #expect(error.description.contains("export CLIENT_SECRET"))
    }

    @Test func `a client that authenticates with an assertion needs no secret in the environment`() throws {
        let url = try #require(URL(string: "https://a.example/"))
        var server = Options.Server(tokenURL: url, clientID: "me")
        #expect(throws: UsageError.self) { try server.loader(in: [:]) }
        server.authentication = .assertion(program: "/bin/identity", arguments: [])
        #expect(throws: Never.self) { try server.loader(in: [:]) }
    }

    @Test func `a client's secret given as an argument is refused, and the error says where it belongs`() throws {
        let error = try #require(throws: UsageError.self) { try Options(parsing: ["--client-secret", "hunter2"]) }
        #expect(error.description.contains("read -rs CLIENT_SECRET; export CLIENT_SECRET"))
        #expect(!error.description.contains("hunter2"))
    }
}
