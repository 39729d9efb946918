#if canImport(FoundationNetworking)
import AccessTokens
import DataLoading
import Foundation
import LoopbackServers
import TestBudgets
import Testing

/// In its own process, since all sessions of a process wait while Foundation is busy; it takes seconds.
@Suite(.thorough, .timeLimit(.minutes(10)), .inRealTime)
struct BusyFoundationTests {
    @Test func `while Foundation reads a long header, limits hold, tasks run, and requests that were given up are never sent`()
        async
    {
        await #expect(processExitsWith: .success) {
            let server = try ResourceServer()
            let hostile = try ResourceServer(needsToken: false) { _ in LongHeader.reply }
            let loader = try FaultTests.loader(server, silence: 1)
            let stuck = loader.start(Request(url: hostile.url))
            await LongHeader.untilFoundationIsBusy()
            // More requests than the pool has threads, of both kinds: on the shared connections and on their own.
            let others = (0..<2 * ProcessInfo.processInfo.activeProcessorCount).flatMap { _ in
                [loader.start(Request(url: server.url)), loader.start(Request(url: server.url, method: "POST"))]
            }
            for running in others + [stuck] {
                let error = await #expect(throws: DataLoadingError.self) { try await running.response() }
                #expect(error?.code == .timedOut)
            }
            #expect(await LongHeader.remainingTime() > .milliseconds(100), "all ended before Foundation had read it")
            #expect(try await server.loader().perform(Request(url: server.url("later"))).status == 200)
            #expect(server.arrivals.all.map(\.path) == ["/later"])
        }
    }
}
#endif
