import AccessTokens
import AccessTokensTesting
import TestBudgets
import Testing

/// A token of 5 s has a window from 3.25 … 3.375 s to hard expiry at 4.5 s.
///
/// So the shortest window is 1,125 ms long.
@Suite("Guarantee 10: no caller waits for a refresh that is in time")
struct BusyRefreshTests {
    private static let refreshes = 4

    @Test(arguments: isThorough ? [1, 500, 1_124] : [1, 1_124])
    func `none of 64 callers per millisecond waits if the load is no slower than the shortest window`(load: Int) throws {
        #expect(try Self.waits(load: load, seeds: 1 ... .everyday(1, thorough: 2)).isEmpty)
    }

    @Test func `callers wait only for the difference if the load takes longer than the window`() throws {
        let slow = 1_200
        let waits = try Self.waits(load: slow, seeds: 1 ... .everyday(1, thorough: 2))
        #expect(waits.contains { $0 > 0 })
        #expect(waits.allSatisfy { $0 <= slow - 1_125 + 1 }, "beyond the window, and the millisecond until the next caller comes")
    }

    /// Returns how many milliseconds callers waited, for each load that had waiting callers.
    private static func waits(load duration: Int, seeds: ClosedRange<UInt64>) throws -> [Int] {
        try seeds.flatMap { try waits(load: duration, seed: $0) }
    }

    private static func waits(load duration: Int, seed: UInt64) throws -> [Int] {
        let scene = Scene(seed: seed)
        let first = scene.call()
        try scene.deliver(AccessToken("0", lifetime: .seconds(5)))
        #expect(first.value != nil)
        var waits: [Int] = [], waiting: [Stage.Player<Void>] = []
        var running: (call: ScriptedLoader.Call, end: Int)?
        var loads = 0, now = 0, since = 0
        while loads < refreshes {
            let crowd = scene.stage.start { [service = scene.service] in
                for _ in 0..<64 { _ = try await service.retrieveToken() }
            }
            if crowd.value == nil {
                if waiting.isEmpty { since = now }
                waiting.append(crowd)
            }
            if running == nil, scene.loader.loadCount > loads + 1 { running = (try scene.load(), now + duration) }
            if let (call, end) = running, end <= now {
                running = nil
                loads += 1
                scene.succeed(call, with: AccessToken("\(loads)", lifetime: .seconds(5)))
                #expect(waiting.allSatisfy { $0.value != nil }, "one load answers all who wait")
                if !waiting.isEmpty { waits.append(now - since) }
                waiting = []
            }
            now += 1
            scene.advance(by: .milliseconds(1))
        }
        return waits
    }
}
