import Interleavings
import Testing

/// What callers of a token service must get, without any of its machinery: the example of a specification whose answers
/// don't follow from its state, since the authorization server picks the tokens.
struct TokenSpecification: SequentialSpecification {
    enum Operation { case retrieve, invalidate(String), replace(String), reset }
    enum Outcome { case token(String), failed, done }

    struct State: Hashable {
        var token: String?
        var dropped: [String] = []

        func holding(_ new: String?) -> State {
            State(token: new, dropped: dropped + (token.map { [$0] } ?? []))
        }
    }

    let initialState = State()

    func states(after operation: Operation, returning outcome: Outcome?, in state: State) -> [State] {
        switch (operation, outcome) {
        case (.retrieve, .token(let token)):
            if state.token == token { return [state] }
            return state.token == nil && !state.dropped.contains(token) ? [state.holding(token)] : []
        // What it loads, if it loads, shows in the answers of the others.
        case (.retrieve, _): return [state]
        case (.invalidate(let token), _): return [state.token == token ? state.holding(nil) : state]
        case (.replace(let token), _): return [state.holding(token)]
        case (.reset, _): return [state.holding(nil)]
        }
    }

    func expectation(of operation: Operation, in state: State) -> String? {
        state.token ?? "a token that was not dropped"
    }
}

@Suite("Linearizability: a token service")
struct TokenServiceTests {
    @Test("callers that overlap share a token, also with a sign-out between")
    func shared() throws {
        try history(
            TokenSpecification(), .call("a", .retrieve), .call("b", .retrieve), .call("out", .reset),
            .back("a", .token("t1")), .back("b", .failed), .call("c", .retrieve), .back("out", .done),
            .back("c", .token("t2"))
        ).requireLinearizable()
    }

    @Test("after a sign-out, nobody gets an earlier token")
    func fence() {
        let report = history(
            TokenSpecification(), .call("a", .retrieve), .back("a", .token("t1")), .call("out", .reset),
            .back("out", .done), .call("b", .retrieve), .back("b", .token("t1"))
        ).check().report
        #expect(report?.contains("#3 retrieve returned token(\"t1\"); now it would return a token that was not dropped.") == true)
    }

    @Test("a token that was replaced while its load ran is not served", arguments: [("new", true), ("old", false)])
    func replaced(token: String, isRight: Bool) {
        let verdict = history(
            TokenSpecification(), .call("a", .retrieve), .call("in", .replace("new")), .back("in", .done),
            .back("a", .token("new")), .call("b", .retrieve), .back("b", .token(token))
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test("a late refusal of an older token leaves the fresh one alone", arguments: [("t2", true), ("t3", false)])
    func lateRefusal(token: String, isRight: Bool) {
        let verdict = history(
            TokenSpecification(), .call("a", .retrieve), .back("a", .token("t1")),
            .call("a", .invalidate("t1")), .back("a", .done), .call("b", .retrieve), .back("b", .token("t2")),
            .call("c", .invalidate("t1")), .back("c", .done), .call("c", .retrieve), .back("c", .token(token))
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test("a refusal that never returned may have dropped the token or not", arguments: ["t1", "t2"])
    func openRefusal(token: String) throws {
        try history(
            TokenSpecification(), .call("a", .retrieve), .back("a", .token("t1")), .call("b", .invalidate("t1")),
            .call("c", .retrieve), .back("c", .token(token))
        ).requireLinearizable()
    }
}
