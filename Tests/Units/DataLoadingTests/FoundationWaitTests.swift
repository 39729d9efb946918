#if canImport(FoundationNetworking)
import DataLoading
import Foundation
import FoundationNetworking
import LoopbackServers
import TestBudgets
import Testing
import TokenServiceConcurrency

/// The cost of a wait in the table for Linux, measured as the processor time of a separate process.
///
/// If this fails, Foundation now waits on a fresh connection as on others: correct the documents.
@Suite(.thorough, .timeLimit(.minutes(10)), .inRealTime)
struct FoundationWaitTests {
    static var processorSeconds: Double {
        var usage = rusage()
        _ = unsafe getrusage(.init(0), &usage)
        let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        let microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
        return Double(seconds) + Double(microseconds) / 1e6
    }

    @Test func `on Linux a wait on a fresh connection keeps a processor busy, and on a used one it costs nothing`() async {
        await #expect(processExitsWith: .success) {
            let arrivals = Lock(0)
            let server = try LoopbackServer { _ in
                let isFirst = arrivals.withLock { arrivals in
                    arrivals += 1
                    return arrivals == 1
                }
                return isFirst ? .kept("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") : .unfinished("")
            }
            let used = DataLoaderFactory(session: FaultTests.session(silence: 1)).makeLoader()
            _ = try await used.perform(Request(url: server.url))
            let fresh = DataLoaderFactory(session: FaultTests.session(silence: 1)).makeLoader()
            var taken: [Double] = []
            for loader in [used, fresh] {
                let before = Self.processorSeconds
                let error = await #expect(throws: DataLoadingError.self) { try await loader.perform(Request(url: server.url)) }
                #expect(error?.code == .timedOut)
                taken.append(Self.processorSeconds - before)
            }
            // On a busy machine it gets less than a whole processor.
            #expect(taken[0] < 0.1 && taken[1] > 5 * taken[0], "1 s took \(taken[0]) s, and \(taken[1]) s on a fresh connection")
        }
    }
}
#endif
