import AccessTokens
import TestStage

/// One design in one world, with callers that ask it and a record of who was answered with what.
struct Scenario {
    struct Answer: Sendable {
        let caller: Int
        let token: AccessToken?
    }

    let world: World
    private var service: Design.Service?
    private let answers = Log<Answer>()
    private(set) var callers = 0

    init(_ design: Design, answersTwice: Bool = false) {
        world = World()
        service = design.make(world, Network(to: world.server, answersTwice: answersTwice))
    }

    /// Lets a number of callers ask, one after the other, without waiting for each other's answers.
    mutating func ask(_ count: Int) {
        for _ in 0..<count {
            let caller = callers
            callers += 1
            service?.ask { [answers] in answers.append(Answer(caller: caller, token: try? $0.get())) }
        }
        world.settle()
    }

    func signOut() {
        service?.signOut()
        world.settle()
    }

    /// Lets go of the service, as a screen does that is closed.
    mutating func release() {
        service = nil
    }

    /// How often each caller was answered.
    var answersPerCaller: [Int] {
        answers.entries.reduce(into: Array(repeating: 0, count: callers)) { $0[$1.caller] += 1 }
    }

    /// How many callers were never answered.
    var unanswered: Int { answersPerCaller.count { $0 == 0 } }

    /// How many answers came after that of a later caller.
    var overtaken: Int {
        var latest = -1
        return answers.entries.count { answer in
            latest = max(latest, answer.caller)
            return answer.caller < latest
        }
    }

    /// The tokens handed out, each once, in order.
    var tokens: [AccessToken] {
        var seen: Set<String> = []
        return answers.entries.compactMap(\.token).filter { seen.insert($0.value).inserted }
    }

    /// The last caller's token.
    var lastToken: AccessToken? { answers.entries.last?.token }
}
