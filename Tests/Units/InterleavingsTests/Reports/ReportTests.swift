import Interleavings
import Testing

@Suite struct `A failure's report` {
    @Test func `names the failure, its schedule and how to replay it`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.random(schedules: 500, seed: 7), granularity: .accesses, stepLimit: 99, Races.lostUpdate)
        }
        let report = "\(try #require(failure))"
        let (number, seed, schedule) = (failure?.number ?? 0, failure?.seed ?? 0, failure.map { "\($0.schedule)" } ?? "")
        #expect(report.hasPrefix("Schedule \(number) of 500 (random, seed \(seed)) failed: the balance is "), "\(report)")
        #expect(report.contains("► "), "\(report)")
        #expect(report.contains(" build on "), "\(report)")
        let line = "    try await explore(.replay(\"\(schedule)\"), granularity: .accesses, stepLimit: 99) { simulation in …"
        #expect(report.hasSuffix(line), "\(report)")
    }

    @Test func `is the same in every run`() async throws {
        var reports: Set<String> = []
        for _ in 1...3 {
            let failure = await #expect(throws: ScheduleFailure.self) { try await explore(.mixed(), Races.sixCallers) }
            reports.insert("\(try #require(failure))")
        }
        #expect(reports.count == 1)
    }

    @Test func `has no diagram if nothing was recorded`() async throws {
        let runs = Account()
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.random(schedules: 2)) { simulation in
                runs.balance += 1
                for _ in 0..<runs.final { simulation.spawn("task") {} }
            }
        }
        let report = "\(try #require(failure))"
        #expect(report.contains("The same choices led to another execution"))
        #expect(!report.contains("step  "))
        #expect(report.contains("\n\nTo see it again"))
    }

    @Test func `is safe to print, whatever an error contains`() async throws {
        let failure = await #expect(throws: ScheduleFailure.self) {
            try await explore(.replay("")) { simulation in
                try simulation.require(false, "\u{1B}[31mred\u{7}\nsecond line\u{202E}")
            }
        }
        let report = "\(try #require(failure))"
        #expect(report.contains("failed: ␛[31mred␇\nsecond line\u{FFFD}\n"), "\(report)")
        #expect(report.contains("✘ ␛[31mred␇ second line\u{FFFD}"), "\(report)")
        #expect(!report.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" })
    }
}
