import AccessTokens
import AccessTokensTesting

extension Trial {
    /// A violated requirement and its place; the explorer shrinks a failure to another one with the same place.
    struct Violation: Sendable {
        let text: String
        let line: Int

        init(_ text: String, line: Int = #line) {
            self.text = text
            self.line = line
        }
    }
}

/// The requirements of trials; `nil`: the run meets the requirement.
extension Trial.Run {
    /// More than one load.
    var secondLoad: Trial.Violation? {
        let loads = network.server.loadsStarted
        return loads == 1 ? nil : Trial.Violation("\(loads) loads, where one is enough")
    }

    /// A caller with no answer, with several, or answered before a caller whose call had returned when this one asked.
    var wrongAnswer: Trial.Violation? {
        let record = record
        for caller in record.callers {
            guard let place = caller.place else { return Trial.Violation("\(caller.name) is never answered") }
            if caller.answers.count > 1 { return Trial.Violation("\(caller.name) is answered \(caller.answers.count) times") }
            let hasOvertaken = record.returned.prefix(caller.earlier).contains { earlier in
                record.callers[earlier].place.map { $0 > place } ?? true
            }
            if hasOvertaken { return Trial.Violation("\(caller.name) is answered before an earlier caller") }
        }
        return nil
    }

    /// A caller without a token that the server accepts.
    var refusedToken: Trial.Violation? {
        for caller in record.callers {
            let token = try? caller.answers.first?.get()
            let isAccepted = token.map(network.server.accepts) ?? false
            if !isAccepted { return Trial.Violation("\(caller.name) holds no token that the server accepts") }
        }
        return nil
    }

    /// A token that was issued before the sign-out began, and given to a caller after it.
    var oldToken: Trial.Violation? {
        let record = record
        // The server numbers its tokens.
        let old = (0..<record.issuedBeforeSignOut).map { "access-\($0 + 1)" }
        let late = record.callers.filter { !$0.name.hasPrefix("caller") }
        let deceived = late.first { caller in (try? caller.answers.first?.get()).map { old.contains($0.value) } ?? false }
        return deceived.map { Trial.Violation("the \($0.name) gets a token from before the sign-out") }
    }
}

/// The lab's counts of a run.
extension Trial.Run {
    /// How many loads there were.
    package var loads: Int { network.server.loadsStarted }

    /// How many tokens held by callers the server no longer accepts.
    package var tokensRevokedInUse: Int {
        var seen: Set<String> = []
        let tokens = record.callers.flatMap(\.answers).compactMap { try? $0.get() }
        return tokens.count { seen.insert($0.value).inserted && !network.server.accepts($0) }
    }

    /// How many callers were never answered.
    package var unanswered: Int { record.callers.count { $0.answers.isEmpty } }

    /// How many callers were answered more than once.
    package var answeredTwice: Int { record.callers.count { $0.answers.count > 1 } }

    /// How many answers arrived after that of a later caller.
    package var overtaken: Int {
        var latest = -1
        return record.answered.count { caller in
            latest = max(latest, caller)
            return caller < latest
        }
    }

    /// Whether the last caller got a token, and one from after the sign-out.
    package var signOutHolds: Bool {
        (try? record.callers.last?.answers.first?.get()) != nil && oldToken == nil
    }
}
