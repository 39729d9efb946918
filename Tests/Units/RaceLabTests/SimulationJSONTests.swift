import Foundation
import Testing

@testable import race_lab

@Suite struct `The simulation's JSON` {
    private struct Report: Decodable {
        struct Row: Decodable {
            let design: String
            let loads: Int
            let answersLost: Int
            let signOutHolds: Bool
            let schedules: Int
            let failing: Int
        }

        let callers: Int
        let designs: [Row]
    }

    @Test func `the lab's JSON names its figures as the table does`() async throws {
        let report = try await LabRun.usual.value.report
        let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(report)) as? [String: Any]
        let keys = Set(try #require((json?["designs"] as? [[String: Any]])?.first).keys)
        for count in SimulationReport.counts {
            let words = count.name.split { $0 == " " || $0 == "-" }
            let key = words[0] + words.dropFirst().map(\.capitalized).joined()
            #expect(keys.contains(String(key)), "no \(key) for '\(count.name)'")
        }
    }

    @Test func `the lab's JSON holds the same figures as the table`() async throws {
        let report = try await LabRun.usual.value.report
        let json = try JSONDecoder().decode(Report.self, from: JSONEncoder().encode(report))
        #expect(json.callers == 100)
        #expect(json.designs.count == report.designs.count)
        for (row, findings) in zip(json.designs, report.designs) {
            #expect(row.design == findings.design)
            #expect(row.loads == findings.loads)
            #expect(row.answersLost == findings.answersLost)
            #expect(row.signOutHolds == findings.signOutHolds)
            #expect(row.schedules == findings.schedules)
            #expect(row.failing == findings.failing)
        }
    }
}
