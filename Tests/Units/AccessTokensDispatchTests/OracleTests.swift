import RaceGallery
import Testing

/// Stage 3 of the articles, the shim over the actor, and the actor itself, run with the same cases.
///
/// Where all three must agree, the articles' stage is the oracle for the shim. Where they must differ, the case gives the reason.
@Suite("Oracle: stage 3, the shim and TokenService do the same, except where they must differ")
struct OracleTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let steps: [Step]
        let expected: [String]
        /// Stage 3's different behaviour, and which of its flaws that is.
        var stage3: (log: [String], flaw: String)?

        var testDescription: String { name }
    }

    static let cases = [
        Case(name: "one caller", steps: [.call, .succeed("a")], expected: ["1 a"]),
        Case(
            name: "callers during a load share it, in order", steps: [.call, .call, .call, .succeed("a")],
            expected: ["1 a", "2 a", "3 a"]),
        Case(
            name: "a cached token starts no load", steps: [.call, .succeed("a"), .call, .call], expected: ["1 a", "2 a", "3 a"]),
        Case(name: "a failure reaches all who waited", steps: [.call, .call, .fail], expected: ["1 failed", "2 failed"]),
        Case(
            name: "after a failure the next caller tries again", steps: [.call, .fail, .call, .succeed("a")],
            expected: ["1 failed", "2 a"]),
        Case(
            name: "after expiry the next caller loads", steps: [.call, .succeed("a"), .wait(3_600), .call, .succeed("b")],
            expected: ["1 a", "2 b"]),
        Case(
            name: "a token about to expire is not handed out", steps: [.call, .succeed("a"), .wait(3_570), .call, .succeed("b")],
            expected: ["1 a", "2 b"], stage3: (["1 a", "2 a"], "6: no leeway")),
        Case(
            name: "near expiry callers get the token while one loads",
            steps: [.call, .succeed("a"), .wait(3_000), .call, .succeed("b"), .call],
            expected: ["1 a", "2 a", "3 b"], stage3: (["1 a", "2 a", "3 a"], "7: nobody refreshes ahead")),
        Case(
            name: "a sign-out forgets the token", steps: [.call, .succeed("a"), .signOut, .call, .succeed("b")],
            expected: ["1 a", "2 b"]),
        Case(
            name: "a sign-out during a load holds", steps: [.call, .signOut, .succeed("a"), .call, .succeed("b")],
            expected: ["1 reset", "2 b"], stage3: (["1 a", "2 a"], "5: undone by the load's result")),
        Case(
            name: "a load that never answers is given up", steps: [.call, .wait(30), .call],
            expected: ["1 timed out", "2 timed out"], stage3: ([], "2: blocks every caller for ever")),
        Case(
            name: "a second answer is ignored", steps: [.call, .succeed("a"), .again("b"), .call],
            expected: ["1 a", "2 a"], stage3: (["1 a", "2 b"], "3: the second answer overwrites the token")),
        Case(
            name: "a release during a load answers everybody", steps: [.call, .call, .release, .succeed("a")],
            expected: ["1 a", "2 a"], stage3: ([], "1: captured weakly")),
    ]

    @Test(arguments: cases)
    func `stage 3 gives the expected answers, but for its known flaws`(_ oracle: Case) {
        let log = Stage3Subject().perform(oracle.steps)
        #expect(log == oracle.stage3?.log ?? oracle.expected, "\(oracle.stage3?.flaw ?? "")")
    }

    @Test(arguments: cases)
    func `the shim gives the expected answers`(_ oracle: Case) {
        #expect(ShimSubject().perform(oracle.steps) == oracle.expected)
    }

    @Test(arguments: cases)
    func `TokenService gives the expected answers`(_ oracle: Case) {
        #expect(ServiceSubject().perform(oracle.steps) == oracle.expected)
    }
}
