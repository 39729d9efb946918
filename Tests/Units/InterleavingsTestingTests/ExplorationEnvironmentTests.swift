import Interleavings
import Testing

@testable import InterleavingsTesting

@Suite struct `The environment of explorations` {
    @Test func `has no settings unless a variable is set`() throws {
        let environment = try ExplorationEnvironment(["HOME": "/"])
        #expect(environment.schedules == nil)
        #expect(environment.seed == nil)
        #expect(environment.replay == nil)
        #expect(environment.page == nil)
    }

    @Test func `sets schedules, seed, replay, the program and the model of time`() throws {
        let environment = try ExplorationEnvironment([
            "INTERLEAVINGS_SCHEDULES": "50", "INTERLEAVINGS_SEED": "18446744073709551615", "INTERLEAVINGS_REPLAY": "0.2.1",
            "INTERLEAVINGS_TIME": "anytime", "INTERLEAVINGS_STOP": "17", "INTERLEAVINGS_PAGE": "pages",
            "INTERLEAVINGS_PROGRAM": "0.1|0",
        ])
        #expect(environment.page == "pages")
        #expect(environment.program == "0.1|0")
        #expect(environment.stop == 17)
        #expect(environment.time == .anytime)
        #expect(environment.schedules == 50)
        #expect(environment.seed == .max)
        #expect(environment.replay == "0.2.1")
        #expect(environment.replayed == 1)
        let second = try ExplorationEnvironment(["INTERLEAVINGS_REPLAY": "2:0.2.1"])
        #expect(second.replay == "0.2.1")
        #expect(second.replayed == 2)
    }

    @Test func `can stop only a replay`() {
        let problem = #expect(throws: ExplorationEnvironment.Problem.self) {
            try ExplorationEnvironment(["INTERLEAVINGS_STOP": "3"])
        }
        #expect(problem?.description == "INTERLEAVINGS_STOP stops a replay: set INTERLEAVINGS_REPLAY, too")
    }

    @Test func `gives all explorations of a run the same fresh seed`() throws {
        let variables = ["INTERLEAVINGS_SEED": "random"]
        let seed = try ExplorationEnvironment(variables).seed
        #expect(seed != nil)
        #expect(try ExplorationEnvironment(variables).seed == seed)
    }

    @Test(arguments: [
        ("INTERLEAVINGS_SCHEDULES", "0"), ("INTERLEAVINGS_SCHEDULES", "many"), ("INTERLEAVINGS_SEED", "-1"),
        ("INTERLEAVINGS_REPLAY", "0.x"), ("INTERLEAVINGS_REPLAY", "0..1"), ("INTERLEAVINGS_REPLAY", "0:1"),
        ("INTERLEAVINGS_REPLAY", ":1"), ("INTERLEAVINGS_TIME", "sometimes"), ("INTERLEAVINGS_STOP", "0"),
        ("INTERLEAVINGS_PROGRAM", "0.|1"),
        ("INTERLEAVINGS_PAGE", ""),
    ])
    func `names an invalid variable and its value`(name: String, value: String) {
        let problem = #expect(throws: ExplorationEnvironment.Problem.self) { try ExplorationEnvironment([name: value]) }
        #expect(problem?.description.hasPrefix(name) == true)
        #expect(problem?.description.hasSuffix("not '\(value)'") == true)
    }
}
