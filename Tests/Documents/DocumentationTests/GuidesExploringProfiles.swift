import AccessTokens

// The profiles of `TestingYourCode`, unchanged: with a race, with half of a fix, and with all of it.

protocol Profiles: Actor {
    var name: String? { get }
    func load() async throws
    func signOut() async throws
}

enum RacingProfiles {
    actor Profile: Profiles {
        private(set) var name: String?
        private let tokens: TokenService
        private let fetchName: @Sendable (AccessToken) async throws -> String
        private let endSession: @Sendable () async throws -> Void

        init(
            tokens: TokenService, fetchName: @escaping @Sendable (AccessToken) async throws -> String,
            endSession: @escaping @Sendable () async throws -> Void
        ) {
            self.tokens = tokens
            self.fetchName = fetchName
            self.endSession = endSession
        }

        func load() async throws {
            let token = try await tokens.retrieveToken()
            name = try await fetchName(token)
        }

        func signOut() async throws {
            name = nil
            try await endSession()
            _ = await tokens.reset()
        }
    }
}

enum CountingProfiles {
    actor Profile: Profiles {
        private(set) var name: String?
        private var session = 0
        private let tokens: TokenService
        private let fetchName: @Sendable (AccessToken) async throws -> String
        private let endSession: @Sendable () async throws -> Void

        init(
            tokens: TokenService, fetchName: @escaping @Sendable (AccessToken) async throws -> String,
            endSession: @escaping @Sendable () async throws -> Void
        ) {
            self.tokens = tokens
            self.fetchName = fetchName
            self.endSession = endSession
        }

        func load() async throws {
            let session = session
            let token = try await tokens.retrieveToken()
            let fetched = try await fetchName(token)
            if session == self.session { name = fetched }
        }

        func signOut() async throws {
            session += 1
            name = nil
            try await endSession()
            _ = await tokens.reset()
        }
    }
}

enum MendedProfiles {
    actor Profile: Profiles {
        private(set) var name: String?
        private var session = 0
        private let tokens: TokenService
        private let fetchName: @Sendable (AccessToken) async throws -> String
        private let endSession: @Sendable () async throws -> Void

        init(
            tokens: TokenService, fetchName: @escaping @Sendable (AccessToken) async throws -> String,
            endSession: @escaping @Sendable () async throws -> Void
        ) {
            self.tokens = tokens
            self.fetchName = fetchName
            self.endSession = endSession
        }

        func load() async throws {
            let session = session
            let token = try await tokens.retrieveToken()
            let fetched = try await fetchName(token)
            if session == self.session { name = fetched }
        }

        func signOut() async throws {
            _ = await tokens.reset()
            session += 1
            name = nil
            try await endSession()
        }
    }
}
