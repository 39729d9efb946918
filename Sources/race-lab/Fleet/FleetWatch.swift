/// Follows a fleet: who loads, who adopts, who dies, and why a session was lost; a pure value.
struct FleetWatch: Sendable {
    enum Event: Sendable {
        case started(Int32)
        case said(Int32, FleetWorker.Line)
        /// By a signal, or with a status.
        case ended(Int32, signal: Bool)
        case exchanged(token: Int?, Int32, FleetLedger.Answer)
    }

    /// What is known of a process.
    struct Member: Encodable, Equatable {
        let process: Int32
        var loads = 0
        var adoptions = 0
        var isKilled = false
        fileprivate var lastHeard: Duration
        /// When the last silence ended that was as long as the doubt.
        fileprivate var pauseEnd: Duration?
        /// When it last got no answer.
        fileprivate var answerLost: Duration?
        fileprivate var newest = 0

        private enum CodingKeys: CodingKey { case process, loads, adoptions, isKilled }
    }

    /// A session that has ended by itself.
    struct Loss: Encodable, Equatable {
        /// Who presented the refresh token first, and who again.
        let first: Int32, second: Int32
        /// What guarantee 30 says; `nil`: nothing explains it.
        let reason: String?
    }

    private(set) var members: [Member] = []
    private(set) var rotations = 0
    private(set) var losses: [Loss] = []
    /// Which process a token was issued to, and when.
    private var issues: [Int: (process: Int32, time: Duration)] = [:]
    /// The token that each refresh token was exchanged for.
    private var successors: [Int: Int] = [:]

    /// A silence as long as the doubt, as it is heard from outside.
    private static let longSilence = FleetGrant.doubt - FleetWorker.Line.heartbeat * 2

    /// Takes in an event; returns what to tell of it.
    mutating func note(_ event: Event, at time: Duration) -> String? {
        switch event {
        case .started(let process):
            members.append(Member(process: process, lastHeard: time))
            return "\(process) starts"
        case .said(let process, let line): return note(line, of: process, at: time)
        case .ended(let process, let isKilled):
            change(process) { $0.isKilled = isKilled }
            return "\(process) \(isKilled ? "was killed" : "has ended by itself")"
        case .exchanged(let token, let process, let answer): return note(answer, to: token, of: process, at: time)
        }
    }

    private mutating func note(_ line: FleetWorker.Line, of process: Int32, at time: Duration) -> String? {
        change(process) { member in
            if time - member.lastHeard >= Self.longSilence { member.pauseEnd = time }
            member.lastHeard = time
        }
        switch line {
        case .alive: return nil
        case .answerLost:
            change(process) { $0.answerLost = time }
            return "\(process) got no answer to a request"
        case .failed(let reason): return "\(process) gets no token: \(reason)"
        case .token(let number):
            let isOwn = issues[number]?.process == process
            change(process) { member in
                member.newest = max(member.newest, number)
                if isOwn { member.loads += 1 } else { member.adoptions += 1 }
            }
            return isOwn ? "\(process) has saved token \(number)" : "\(process) adopts token \(number)"
        }
    }

    private mutating func note(
        _ answer: FleetLedger.Answer, to token: Int?, of process: Int32, at time: Duration
    ) -> String {
        switch answer {
        case .issued(let number):
            rotations += 1
            issues[number] = (process, time)
            if let token { successors[token] = number }
            return "\(process) loads token \(number)"
        case .refused: return "\(process) is refused: its session has ended"
        case .reused(let first):
            let loss = Loss(first: first, second: process, reason: token.flatMap { reason(for: $0, at: time) })
            losses.append(loss)
            return
                "\(process) presents a refresh token that \(first) has used: the session is lost, \(loss.reason ?? "and nothing explains it")"
        }
    }

    /// What guarantee 30 says about a refresh token that came twice: the fate of the process that presented it first.
    private func reason(for token: Int, at time: Duration) -> String? {
        guard let number = successors[token], let issue = issues[number],
            let holder = members.last(where: { $0.process == issue.process }), holder.newest < number
        else { return nil }
        if holder.isKilled { return "because \(holder.process) was killed before it had saved its token" }
        if (holder.pauseEnd ?? .zero) >= issue.time || time - holder.lastHeard >= Self.longSilence {
            return "because \(holder.process) was paused for longer than the doubt"
        }
        if let lost = holder.answerLost, lost >= issue.time { return "because \(holder.process) got no answer" }
        return nil
    }

    private mutating func change(_ process: Int32, _ body: (inout Member) -> Void) {
        guard let index = members.lastIndex(where: { $0.process == process }) else { return }
        body(&members[index])
    }
}
