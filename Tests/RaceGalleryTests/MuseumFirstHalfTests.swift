import Interleavings
import RaceGallery
import Testing

@Suite struct `Museum, first half` {
    @Test func `museum 1: while one caller awaits its load, the next one enters and loads as well`() async throws {
        try await expect(1, breaks: "one load, however many callers")
    }

    @Test func `museum 2: a flag set inside the spawned work is set too late`() async throws {
        try await expect(2, breaks: "one refresh ahead, however many callers notice that it is due")
    }

    @Test func `museum 3: cancelling the first caller fails the others`() async throws {
        try await expect(3, breaks: "who stays is not cancelled, whoever leaves")
    }

    @Test func `museum 4: cancelling any waiter cancels the load that all share`() async throws {
        try await expect(4, breaks: "who stays, or comes later, is not cancelled")
    }

    @Test func `museum 5: a failed load is served for ever`() async throws {
        try await expect(5, breaks: "after a failure the server is asked again")
    }

    @Test func `museum 6: a failed refresh ahead displaces a token that is still valid`() async throws {
        try await expect(6, breaks: "a valid token is handed out, whatever becomes of its refresh")
    }

    @Test func `museum 7: a sign-out during a load is undone by the load's result`() async throws {
        try await expect(7, breaks: "after a sign-out nobody gets a token of the session before")
    }

    @Test func `museum 8: a user signs in during another's load, and its result overwrites the session`() async throws {
        try await expect(8, breaks: "after Ben has signed in nobody gets a token of Anna's")
    }

    @Test func `museum 9: a finished flight's clean-up evicts its successor`() async throws {
        try await expect(9, breaks: "after a sign-out one load, however many callers")
    }

    @Test func `museum 10: a late 401 for the old token throws the fresh one away`() async throws {
        try await expect(10, breaks: "one refused token costs one load, however late its refusals come")
    }

    @Test func `museum 11: concurrent 401s start as many refreshes, and the session dies`() async throws {
        try await expect(11, breaks: "no refresh token is used twice: the server ends the session")
    }

    @Test func `museum 12: the server hands out the refused token again, and an endless loop begins`() async throws {
        try await expect(12, breaks: "a refused token that comes again is an error, not a reason to ask again")
    }

    @Test func `museum 13: a forced refresh joins the older, ordinary load`() async throws {
        try await expect(13, breaks: "a forced refresh brings what was not there before it")
    }

    @Test func `museum 14: a loader that never answers blocks all later callers`() async throws {
        try await expect(14, breaks: "nobody waits for more than a minute, though the server is silent")
    }

    @Test func `museum 15: the second caller disables the time limit that all share`() async throws {
        try await expect(15, breaks: "nobody waits for more than a minute, though the server is silent")
    }

    @Test func `has the numbers 1 to 15, each with its lesson and its source`() {
        #expect(Exhibit.firstHalf.map(\.number) == Array(1...15))
        #expect(Exhibit.firstHalf.allSatisfy { !$0.lesson.isEmpty && !$0.source.isEmpty })
    }

    @Test(arguments: 1...15) func `TokenService passes where the broken service fails`(number: Int) async throws {
        let exhibit = Exhibit.firstHalf[number - 1]
        try await explore(.mixed(schedules: 400), granularity: exhibit.granularity, exhibit.mended)
        try await explore(.exhaustive(preemptions: 2, limit: 300), granularity: exhibit.granularity, exhibit.mended)
    }

    /// On a machine so loaded that any timer may come before work that was ready long ago; but for the promises about time.
    @Test(arguments: Set(1...15).subtracting([5, 14, 15]).sorted())
    func `TokenService passes also when time moves at any step`(number: Int) async throws {
        let exhibit = Exhibit.firstHalf[number - 1]
        try await explore(.mixed(schedules: 200), time: .anytime, granularity: exhibit.granularity, exhibit.mended)
        try await explore(
            .exhaustive(preemptions: 2, limit: 300), time: .anytime, granularity: exhibit.granularity, exhibit.mended)
    }

    /// The broken service breaks its promise within the exhibit's strategy, and that is all that goes wrong.
    private func expect(_ number: Int, breaks promise: String, at location: SourceLocation = #_sourceLocation) async throws {
        let exhibit = Exhibit.firstHalf[number - 1]
        let broken = try #require(exhibit.broken)
        let failure = try await #require(throws: ScheduleFailure.self, sourceLocation: location) {
            try await explore(exhibit.strategy, time: exhibit.time, granularity: exhibit.granularity, broken)
        }
        let problem = try #require(failure.underlying as? ExplorationProblem, sourceLocation: location)
        #expect(problem.code == .requirement, sourceLocation: location)
        #expect(problem.detail == promise, sourceLocation: location)
    }
}
