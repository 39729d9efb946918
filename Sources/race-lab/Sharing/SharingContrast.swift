/// How many sessions each design loses, per 1,000 rotations.
struct SharingContrast {
    struct Row: Encodable, Equatable {
        let design: String
        /// Sessions lost without faults, with pauses, with long pauses, with kills, and with kills at a server with a grace period.
        let lost: [Int]
    }

    /// How many rotations each number is counted over.
    static let rotations = 1_000
    static let seed: UInt64 = 1

    let rows: [Row]

    /// Runs every design with every kind of trouble.
    ///
    /// - Parameters:
    ///   - report: Told what happens next, for a person who waits.
    ///   - print: Gets the text, each part as soon as it is known.
    init(report: (_ progress: String) -> Void = { _ in }, print: (_ text: String) -> Void = { _ in }) async throws {
        print(Self.opening + "\n")
        var rows: [Row] = []
        for design in SharingDesign.allCases {
            var lost: [Int] = []
            for trouble in SharingTrial.Trouble.allCases {
                report("\(design.name): \(trouble)")
                lost.append(try await SharingTrial.run(design, trouble, rotations: Self.rotations, seed: Self.seed))
            }
            rows.append(Row(design: design.name, lost: lost))
            print(design.name)
        }
        self.rows = rows
        print("\n" + table.lines.joined(separator: "\n"))
    }

    private static let opening = """
        \(SharingTrial.processes) processes share a refresh token that a server rotates. If one comes twice, the server ends \
        the session. One refresh in \(SharingTrial.faultRate) meets a fault: right before the request, before the answer, or \
        before the save, in turn. Here are the sessions that five ways to share lose in \(rotations) rotations, counted in \
        virtual time:
        """.wrapped(indent: 0)

    var table: Table {
        Table(
            headings: [
                [], ["no", "faults"], ["pauses of", "45 s"], ["pauses of", "10 min"], ["kills"],
                ["kills,", "a grace", "of 30 s"],
            ],
            rows: rows.map { [$0.design] + $0.lost.map { "\($0)" } })
    }
}
