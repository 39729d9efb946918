#if canImport(FoundationNetworking)
import AccessTokensHTTP
import AccessTokensOAuth
import Foundation
import LoopbackServers
import TestBudgets
import Testing

/// In its own process, since all sessions of a process wait while Foundation is busy; it takes seconds.
@Suite(.thorough, .timeLimit(.minutes(10)), .inRealTime)
struct BusyFoundationTests {
    @Test func `the time limit and a cancellation hold while Foundation reads a header for seconds`() async {
        await #expect(processExitsWith: .success) {
            let silent = try LoopbackServer { _ in .unfinished("") }
            let patient = Task {
                try await URLSessionTransport().send(TransportRequest(url: silent.url, headers: [:], body: Data()))
            }
            _ = await silent.requests.first { _ in true }
            let hostile = try LoopbackServer { _ in LongHeader.reply }
            let impatient = Task {
                try await URLSessionTransport().send(TransportRequest(url: hostile.url, timeLimit: .seconds(1)))
            }
            await LongHeader.untilFoundationIsBusy()
            patient.cancel()
            await #expect(throws: CancellationError.self) { try await patient.value }
            let error = await #expect(throws: TransportError.self) { try await impatient.value }
            #expect(error?.kind == "timedOut")
            #expect(await LongHeader.remainingTime() > .milliseconds(100), "both ended before Foundation had read it")
            #expect(await silent.departures.first { true } != nil)
        }
    }
}
#endif
