import Foundation

/// What goes wrong while processes share a grant.
struct Trial: Codable {
    enum Fault: Codable {
        /// A process gets a signal, so long after it has begun to load.
        case signal(Int32, after: Double)
        /// The gateway closes a connection, before or after the server has worked on the request.
        case drop(isAnswer: Bool)
        /// The store's clock is set during a load, which takes 15 s.
        case storeClock(seconds: Int, isHolderKilled: Bool)
        /// The store doesn't answer, from the middle of a load.
        case away(seconds: Double)
        /// The store refuses writes, from the middle of a load.
        case unwritable(seconds: Double)
    }

    var name: String
    var fault: Fault
    var isHarmless = false
    var grace: Int?
    /// What the server does, whether it is stated or not.
    var serverGrace = 0
    /// `RefreshPolicy(loadTimeout:)` and `TokenSharing(transportLimit:)`, in seconds.
    var limits = 30.0
    var hostOffset = 0
    /// Whether a process starts a second later, which knows nothing of what was before.
    var isJoined = true

    static let all: [Trial] = {
        var all: [Trial] = []
        for (name, isHarmless, grace) in [
            ("harmless", true, nil), ("rotating", false, nil), ("grace 10", false, 10), ("grace 30", false, 30),
        ] {
            for (moment, after) in [("before the server's decision", 0.1), ("after it", 0.45)] {
                all.append(
                    Trial(
                        name: "\(name): kill -9 \(moment)", fault: .signal(SIGKILL, after: after), isHarmless: isHarmless,
                        grace: grace, serverGrace: grace ?? 0))
            }
        }
        for after in [0.0, 0.2, 0.4, 0.55] {
            all.append(
                Trial(name: "grace 10: Ctrl-C after \(after) s", fault: .signal(SIGINT, after: after), grace: 10, serverGrace: 10)
            )
        }
        all += [
            Trial(name: "strict: a request is dropped", fault: .drop(isAnswer: false)),
            Trial(name: "grace 10: a request is dropped", fault: .drop(isAnswer: false), grace: 10, serverGrace: 10),
            Trial(name: "grace 10: an answer is dropped", fault: .drop(isAnswer: true), grace: 10, serverGrace: 10),
            Trial(name: "unstated grace 30: an answer is dropped", fault: .drop(isAnswer: true), serverGrace: 30),
        ]
        for minutes in [-60, -3, -1, 1, 3, 60] {
            all.append(
                Trial(
                    name: "strict: hosts' clocks \(minutes) min off, a request is dropped", fault: .drop(isAnswer: false),
                    hostOffset: minutes * 60))
            all.append(
                Trial(
                    name: "harmless: hosts' clocks \(minutes) min off, kill -9", fault: .signal(SIGKILL, after: 0.1),
                    isHarmless: true, hostOffset: minutes * 60))
        }
        return all
    }()

    static let clockSteps: [Trial] = [-60, -3, -1, 1, 3, 60].flatMap { minutes in
        [
            Trial(
                name: "strict: the store's clock stepped \(minutes) min, holder alive",
                fault: .storeClock(seconds: minutes * 60, isHolderKilled: false), isJoined: false),
            Trial(
                name: "strict: the store's clock stepped \(minutes) min, holder alive, a process starts",
                fault: .storeClock(seconds: minutes * 60, isHolderKilled: false)),
            Trial(
                name: "harmless: the store's clock stepped \(minutes) min, holder dead",
                fault: .storeClock(seconds: minutes * 60, isHolderKilled: true), isHarmless: true),
            Trial(
                name: "grace 10: the store's clock stepped \(minutes) min, holder dead",
                fault: .storeClock(seconds: minutes * 60, isHolderKilled: true), grace: 10, serverGrace: 10),
        ]
    }

    static let refusals = [
        Trial(
            name: "strict: the store can only be read for 25 s, the doubt is 12 s", fault: .unwritable(seconds: 25), limits: 3,
            isJoined: false)
    ]

    static let absences = [
        Trial(name: "harmless: the store is away for 20 s", fault: .away(seconds: 20), isHarmless: true, limits: 3),
        Trial(name: "strict: the store is away for 20 s, the doubt is 12 s", fault: .away(seconds: 20), limits: 3),
    ]
}
