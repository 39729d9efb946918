/// How long and how often the suites measure.
struct Effort: Sendable {
    let rounds: Int
    /// How long one subject runs in one round, at least.
    let batch: Duration
    let isQuick: Bool

    static let full = Effort(rounds: 31, batch: .milliseconds(20), isQuick: false)
    static let quick = Effort(rounds: 11, batch: .milliseconds(5), isQuick: true)
}

/// Subjects measured in interleaved rounds, so that a slow machine slows all of them.
struct Rounds: Sendable {
    /// Nanoseconds for one time, in each round; one array for each subject.
    let results: [[Double]]

    /// Runs every subject once in each round, always in the same order.
    ///
    /// - Parameter count: How many times in a round; `nil`: as many as take long enough, found out first.
    init(of subjects: [Subject], count: Int? = nil, rounds: Int, batch: Duration) async throws {
        var counts: [Int] = []
        for subject in subjects {
            if let count {
                // Once to warm up.
                _ = try await subject.time(count)
                counts.append(count)
            } else {
                counts.append(try await Self.calibrate(subject, batch: batch))
            }
        }
        var results = subjects.map { _ in [Double]() }
        for _ in 0..<rounds {
            for (index, subject) in subjects.enumerated() {
                let duration = try await subject.time(counts[index])
                results[index].append(duration / .nanoseconds(counts[index]))
            }
        }
        self.results = results
    }

    private static func calibrate(_ subject: Subject, batch: Duration) async throws -> Int {
        var count = 16
        // Twice: one pause of the whole machine must not make a handful look like enough.
        while try await min(subject.time(count), subject.time(count)) < batch { count *= 2 }
        return count
    }

    /// Returns the times of one subject.
    func sample(_ index: Int) -> Sample { Sample(results[index]) }

    /// Returns one subject's time divided by another's, round by round.
    func ratio(of index: Int, to other: Int) -> Sample {
        Sample(zip(results[index], results[other]).map { $0 / $1 })
    }
}
