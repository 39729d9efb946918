import AccessTokens
import AccessTokensTesting
import Foundation
import Insides
import Interleavings
import InterleavingsTesting
import Testing

// The Swift blocks of `TestingYourCode` about schedules, unchanged, and run; and its diagram, drawn again.

@Suite(.unlinked) struct `The guide to testing, under every schedule` {
    @Test func `finds what a sign-out leaves on the screen`() async throws {
        typealias Profile = RacingProfiles.Profile
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.exhaustive(preemptions: 1)) { simulation in
                let clock = simulation.clock
                let executor = simulation.taskExecutor
                let tokens = TokenService(
                    environment: .driven(by: executor, clock: clock)
                ) { _ in
                    throw ScriptedFailure(.signIn)  // no user is signed in
                }
                await tokens.replace(with: AccessToken("Anna's"))
                let profile = Profile(tokens: tokens) { _ in
                    try await clock.sleep(for: .seconds(1))  // the network
                    return "Anna"
                } endSession: {
                    try await clock.sleep(for: .seconds(1))  // the network, too
                }
                simulation.spawn("load") { try await profile.load() }.allowingError()
                simulation.spawn("sign out") { try await profile.signOut() }
                try await simulation.settle()
                let name = await profile.name
                try simulation.require(name == nil, "nothing of Anna is left")
            }
        }
        #expect(failure?.description.contains("Schedule 1 (") == true)
    }

    @Test func `finds the mistake in the first repair`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.exhaustive(preemptions: 1)) { try await Self.leavesNothing($0, CountingProfiles.Profile.init) }
        }
        try Self.expectOnPage(failure)
    }

    @Test func `finds no mistake in the second repair`() async throws {
        let summary = try await explore(.exhaustive(preemptions: 1)) {
            try await Self.leavesNothing($0, MendedProfiles.Profile.init)
        }
        #expect(summary.omitsDefaultActorsOnly)
        #if DEBUG && compiler(>=6.3)  // another compiler makes other steps
        #expect(try Self.page().contains("\(summary.schedules) schedules"), "\(summary.schedules)")
        #endif
    }

    private static func leavesNothing(
        _ simulation: Simulation,
        _ make: (
            TokenService, @escaping @Sendable (AccessToken) async throws -> String, @escaping @Sendable () async throws -> Void
        ) -> some Profiles
    ) async throws {
        let clock = simulation.clock
        let tokens = TokenService(environment: .driven(by: simulation.taskExecutor, clock: clock)) { _ in
            throw ScriptedFailure(.signIn)
        }
        await tokens.replace(with: AccessToken("Anna's"))
        let profile = make(tokens) { _ in
            try await clock.sleep(for: .seconds(1))
            return "Anna"
        } _: {
            try await clock.sleep(for: .seconds(1))
        }
        simulation.spawn("load") { try await profile.load() }.allowingError()
        simulation.spawn("sign out") { try await profile.signOut() }
        try await simulation.settle()
        let name = await profile.name
        try simulation.require(name == nil, "nothing of Anna is left")
    }

    private static func page() throws -> String {
        let root = LinkTests.root
        let page = root.appending(path: "Sources/AccessTokens/AccessTokens.docc/TestingYourCode.md")
        return try String(contentsOf: page, encoding: .utf8)
    }

    /// The page shows the diagram of a debug build with Swift 6.3; other builds take other steps.
    private static func expectOnPage(_ failure: ScheduleFailure?) throws {
        #if DEBUG && compiler(>=6.3)  // another compiler makes other steps
        let diagram = try #require(failure?.description.components(separatedBy: "\n\nTo see it again").first)
        #expect(try page().contains(diagram), "\(diagram)")
        #endif
    }
}
