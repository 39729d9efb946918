import Foundation
import Insides
import Interleavings
import InterleavingsTesting
import Testing

// The Swift blocks of “Generating operations”, unchanged. The suite at the end calls the failing test.

actor Stock {
    private(set) var left = 1

    func take() async -> Bool {
        guard left > 0 else { return false }
        await noteInDatabase()
        left -= 1
        return true
    }

    func put() { left += 1 }

    private func noteInDatabase() async { await Task.yield() }
}

struct StockModel: SequentialModel {
    enum Operation: CaseIterable { case take, put }
    var left = 1

    mutating func apply(_ operation: Operation) -> Bool {
        switch operation {
        case .take where left == 0: return false
        case .take: left -= 1
        case .put: left += 1
        }
        return true
    }
}

func exploreStock() async throws {
    try await exploreOperations(StockModel.Operation.allCases, against: StockModel()) { _ in
        Stock()
    } perform: { stock, operation in
        switch operation {
        case .take:
            return await stock.take()
        case .put:
            await stock.put()
            return true
        }
    }
}

func exploreStockByARule() async throws {
    try await exploreOperations(StockModel.Operation.allCases, programs: .random(100, tasks: 2...4)) { simulation in
        (simulation: simulation, stock: Stock())
    } perform: { made, operation, _ in
        switch operation {
        case .take: _ = await made.stock.take()
        case .put: await made.stock.put()
        }
    } check: { made in
        let left = await made.stock.left
        try made.simulation.require(left >= 0, "\(left) are left")
    }
}

@Suite(.unlinked) struct `The guide to generated operations` {
    @Test func `shows the report that the guide's test prints`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) { try await exploreStock() }
        #if DEBUG && os(Linux) && arch(x86_64)
        let path = "Sources/Interleavings/Interleavings.docc/GeneratingOperations.md"
        let page = try String(contentsOf: LinkTests.root.appending(path: path), encoding: .utf8)
        let report = "\(try #require(failure))"
        #expect(page.contains("```\n\(report)\n```"), "\(report)")
        #endif
    }

    @Test func `shows a rule that the same stock breaks`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) { try await exploreStockByARule() }
        #expect(failure?.underlying is ExplorationProblem)
        #expect(failure?.description.contains(#"programs: .replay("0|0")"#) == true)
    }
}
