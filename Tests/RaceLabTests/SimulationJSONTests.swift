import Foundation
import Testing

@testable import race_lab

@Suite struct `The simulation's JSON` {
    private struct Report: Decodable {
        struct Row: Decodable {
            let design: String
            let loads: Int
            let answersLost: Int
            let signOutRespected: Bool
            let schedules: Int
            let failingSchedules: Int
        }

        let callers: Int
        let designs: [Row]
    }

    @Test func `holds the same figures as the table`() async throws {
        let report = try await SimulationReport(callers: 3)
        let json = try JSONDecoder().decode(Report.self, from: JSONEncoder().encode(report))
        #expect(json.callers == 3)
        #expect(json.designs.count == report.designs.count)
        for (row, findings) in zip(json.designs, report.designs) {
            #expect(row.design == findings.design)
            #expect(row.loads == findings.loads)
            #expect(row.answersLost == findings.answersLost)
            #expect(row.signOutRespected == findings.signOutRespected)
            #expect(row.schedules == findings.schedules)
            #expect(row.failingSchedules == findings.failingSchedules)
        }
    }
}
