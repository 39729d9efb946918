/// How many sessions each design loses, per 1,000 rotations.
struct SharingContrast: Encodable, CustomStringConvertible {
    struct Row: Encodable, Equatable {
        let design: String
        /// Sessions lost without faults, with pauses, with long pauses, with kills, and with kills at a server with a grace period.
        let lost: [Int]
    }

    /// How many rotations each number is counted over.
    static let rotations = 1_000
    static let seed: UInt64 = 1

    let rows: [Row]

    init(report: (_ progress: String) -> Void = { _ in }) async throws {
        var rows: [Row] = []
        for design in SharingDesign.allCases {
            report(design.name)
            var lost: [Int] = []
            for trouble in SharingTrial.Trouble.allCases {
                lost.append(try await SharingTrial.run(design, trouble, rotations: Self.rotations, seed: Self.seed))
            }
            rows.append(Row(design: design.name, lost: lost))
        }
        self.rows = rows
    }

    var table: Table {
        Table(
            headings: [
                [], ["no", "faults"], ["pauses of", "45 s"], ["pauses of", "10 min"], ["kills"],
                ["kills, server with", "a grace of 30 s"],
            ],
            rows: rows.map { [$0.design] + $0.lost.map { "\($0)" } })
    }

    var description: String {
        let opening = """
            \(SharingTrial.processes) processes share a refresh token that a server rotates. If one comes twice, the server ends \
            the session. One refresh in \(SharingTrial.faultRate) meets a fault: right before the request, before the answer, or \
            before the save, in turn. Sessions lost in \(Self.rotations) rotations, counted in virtual time:
            """
        return ([opening.wrapped(indent: 0), ""] + table.lines).joined(separator: "\n")
    }
}
