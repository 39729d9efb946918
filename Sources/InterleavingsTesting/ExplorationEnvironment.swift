import Interleavings

/// The settings of explorations in the environment.
struct ExplorationEnvironment: Equatable {
    /// A variable with an invalid value.
    struct Problem: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    var schedules: Int?
    var seed: UInt64?
    var replay: Schedule?
    /// Which exploration of its test replays, from 1.
    var replayed = 1
    var stop: Int?
    var program: Program?
    var time: TimeModel?
    /// The directory for pages of failures.
    var page: String?

    init(_ variables: [String: String]) throws(Problem) {
        if let text = variables["INTERLEAVINGS_SCHEDULES"] {
            guard let number = Int(text), number > 0 else {
                throw Problem(description: "INTERLEAVINGS_SCHEDULES expects a positive number, not '\(text)'")
            }
            schedules = number
        }
        if let text = variables["INTERLEAVINGS_SEED"] {
            guard let number = text == "random" ? Self.freshSeed : UInt64(text) else {
                throw Problem(description: "INTERLEAVINGS_SEED expects a number or 'random', not '\(text)'")
            }
            seed = number
        }
        if let text = variables["INTERLEAVINGS_REPLAY"] {
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let last = parts.last, let schedule = Schedule(String(last)),
                let number = parts.count == 1 ? 1 : Int(parts[0]), number > 0
            else {
                throw Problem(
                    description: "INTERLEAVINGS_REPLAY expects a schedule as a report prints it, such as 0.2.1, not '\(text)'")
            }
            (replay, replayed) = (schedule, number)
        }
        if let text = variables["INTERLEAVINGS_STOP"] {
            guard let step = Int(text), step > 0 else {
                throw Problem(
                    description: "INTERLEAVINGS_STOP expects the number of a step, as a diagram shows it, not '\(text)'")
            }
            guard replay != nil else {
                throw Problem(description: "INTERLEAVINGS_STOP stops a replay: set INTERLEAVINGS_REPLAY, too")
            }
            stop = step
        }
        if let text = variables["INTERLEAVINGS_PROGRAM"] {
            guard let read = Program(text) else {
                throw Problem(
                    description: "INTERLEAVINGS_PROGRAM expects a program as a report prints it, such as 0.1|0, not '\(text)'")
            }
            program = read
        }
        if let text = variables["INTERLEAVINGS_TIME"] {
            guard let model = ["whenIdle": TimeModel.whenIdle, "anytime": .anytime][text] else {
                throw Problem(description: "INTERLEAVINGS_TIME expects 'whenIdle' or 'anytime', not '\(text)'")
            }
            time = model
        }
        page = variables["INTERLEAVINGS_PAGE"]
        guard page?.isEmpty != true else {
            throw Problem(description: "INTERLEAVINGS_PAGE expects the path of a directory, not ''")
        }
    }

    /// One seed for the whole run, so that all reports name the same one.
    private static let freshSeed = UInt64.random(in: 0...UInt64(UInt32.max))
}
