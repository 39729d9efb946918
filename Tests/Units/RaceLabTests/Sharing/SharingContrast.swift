@testable import race_lab

/// How many sessions each design loses, per 1,000 rotations.
struct SharingContrast {
    struct Row {
        let design: String
        /// Sessions lost without faults, with pauses, with long pauses, with kills, and with kills at a server with a grace period.
        let lost: [Int]
    }

    /// The number of rotations behind each number.
    static let rotations = 1_000
    static let seed: UInt64 = 1

    let rows: [Row]

    /// Runs every design with every kind of trouble.
    ///
    init() async throws {
        var rows: [Row] = []
        for design in SharingDesign.allCases {
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
                ["kills,", "a grace", "of 30 s"],
            ],
            rows: rows.map { [$0.design] + $0.lost.map { "\($0)" } })
    }
}
