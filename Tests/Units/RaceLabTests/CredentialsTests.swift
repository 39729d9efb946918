import Testing

@testable import race_lab

@Suite struct `The environment's credentials` {
    @Test func `credentials are the client's own, or a user's refresh token with or without the client's secret`() throws {
        let client = try Credentials(in: ["CLIENT_SECRET": "s"], hasStore: false)
        #expect(client == .client(secret: "s"))
        let app = try Credentials(in: ["CLIENT_SECRET": "s", "REFRESH_TOKEN": "r"], hasStore: false)
        #expect(app == .user(refreshToken: "r", secret: "s"))
        let publicApp = try Credentials(in: ["CLIENT_SECRET": "", "REFRESH_TOKEN": "r"], hasStore: false)
        #expect(publicApp == .user(refreshToken: "r", secret: nil))
    }

    @Test func `credentials are a user's where there is a store, which may have the refresh token`() throws {
        #expect(try Credentials(in: ["CLIENT_SECRET": "s"], hasStore: true) == .user(refreshToken: nil, secret: "s"))
        #expect(try Credentials(in: ["REFRESH_TOKEN": ""], hasStore: true) == .user(refreshToken: nil, secret: nil))
    }

    @Test(arguments: [[:], ["CLIENT_SECRET": ""], ["CLIENT_SECRET": "", "REFRESH_TOKEN": ""]])
    func `credentials must be in the environment, and the error says how to put them there`(_ environment: [String: String])
        throws
    {
        let error = try #require(throws: UsageError.self) { try Credentials(in: environment, hasStore: false) }
        #expect(error.description.contains("neither CLIENT_SECRET nor REFRESH_TOKEN is set"))
        #expect(error.description.contains("export CLIENT_SECRET"))
    }

    @Test(arguments: [
        ("--client-secret", "CLIENT_SECRET"), ("--refresh-token", "REFRESH_TOKEN"), ("--etcd-password", "ETCD_PASSWORD"),
    ])
    func `credentials given as arguments are refused, and the error says where they belong`(_ option: String, _ variable: String)
        throws
    {
        let error = try #require(throws: UsageError.self) { try Options(parsing: [option, "hunter2"]) }
        #expect(error.description.contains("read -rs \(variable); export \(variable)"))
        #expect(!error.description.contains("hunter2"))
    }
}
