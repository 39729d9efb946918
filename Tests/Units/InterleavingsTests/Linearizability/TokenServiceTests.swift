import Interleavings
import Testing

/// The answers that callers of a token service may get: an example of a specification whose answers do not follow from its
/// state, since the authorization server picks the tokens.
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
        // The token that it loads, if any, appears in the answers of the others.
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

@Suite struct `The specification of a token service` {
    @Test func `lets overlapping callers share a token, also with a sign-out between`() throws {
        try history(
            TokenSpecification(), .call("a", .retrieve), .call("b", .retrieve), .call("out", .reset),
            .back("a", .token("t1")), .back("b", .failed), .call("c", .retrieve), .back("out", .done),
            .back("c", .token("t2"))
        ).requireLinearizable()
    }

    @Test func `allows no earlier token after a sign-out`() {
        let report = history(
            TokenSpecification(), .call("a", .retrieve), .back("a", .token("t1")), .call("out", .reset),
            .back("out", .done), .call("b", .retrieve), .back("b", .token("t1"))
        ).check().report
        let reason = "#3 retrieve returned token(\"t1\"); in this state it would return a token that was not dropped."
        #expect(report?.contains(reason) == true)
    }

    @Test(arguments: [("new", true), ("old", false)])
    func `allows no token that was replaced while it was loaded`(token: String, isRight: Bool) {
        let verdict = history(
            TokenSpecification(), .call("a", .retrieve), .call("in", .replace("new")), .back("in", .done),
            .back("a", .token("new")), .call("b", .retrieve), .back("b", .token(token))
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test(arguments: [("t2", true), ("t3", false)])
    func `keeps the fresh token after a late refusal of an older one`(token: String, isRight: Bool) {
        let verdict = history(
            TokenSpecification(), .call("a", .retrieve), .back("a", .token("t1")),
            .call("a", .invalidate("t1")), .back("a", .done), .call("b", .retrieve), .back("b", .token("t2")),
            .call("c", .invalidate("t1")), .back("c", .done), .call("c", .retrieve), .back("c", .token(token))
        ).check()
        #expect(verdict.isLinearizable == isRight)
    }

    @Test(arguments: ["t1", "t2"])
    func `lets a refusal that never returned have dropped the token or not`(token: String) throws {
        try history(
            TokenSpecification(), .call("a", .retrieve), .back("a", .token("t1")), .call("b", .invalidate("t1")),
            .call("c", .retrieve), .back("c", .token(token))
        ).requireLinearizable()
    }
}
