import Interleavings

/// What happens to a service in the contrast, and what must hold then, whatever the schedule.
public struct Trial: Sendable {
    /// What happens, as a clause.
    public let name: String
    var trouble = Network.Trouble.none
    let run: @Sendable (Bench) async throws -> Void

    /// All of them; the first is the articles' question.
    public static let all = [rush, signOut, release, silence, echo]

    /// One load, one answer for each, in order, with a token that the server accepts.
    public static let rush = Trial(name: "everybody asks at once") { bench in
        bench.everybodyAsks()
        try await bench.simulation.settle()
        try bench.requireOneLoad()
        try bench.requireAnswers()
        try bench.requireAcceptedTokens()
    }

    /// Who asks after the sign-out gets nothing from before it.
    public static let signOut = Trial(name: "somebody signs out meanwhile") { bench in
        bench.everybodyAsks()
        bench.signOut()
        try await bench.simulation.settle()
        bench.ask("later caller")
        try await bench.simulation.settle()
        try bench.requireAnswers()
        try bench.requireNewToken()
    }

    /// The owner lets the service go; whoever has asked is answered.
    public static let release = Trial(name: "the service is released meanwhile") { bench in
        bench.everybodyAsks()
        bench.release()
        try await bench.simulation.settle()
        try bench.requireAnswers()
    }

    /// The first load gets no answer; everybody is told so or served, and so is who comes a minute later.
    public static let silence = Trial(name: "the first load gets no answer", trouble: .firstAnswerIsLate) { bench in
        bench.everybodyAsks()
        try await bench.simulation.clock.sleep(for: .seconds(60))
        bench.ask("later caller")
        try await bench.simulation.settleNow()
        try bench.requireAnswers()
    }

    /// The loader calls its handler twice.
    public static let echo = Trial(name: "the loader answers twice", trouble: .answersTwice) { bench in
        bench.everybodyAsks()
        try await bench.simulation.settle()
        try bench.requireAnswers()
    }
}
