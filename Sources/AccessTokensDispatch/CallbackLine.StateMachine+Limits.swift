import AccessTokens

extension CallbackLine {
    /// How long a call waits at most, on the service's clock.
    struct Limit: Sendable {
        let start: Duration
        let end: Duration

        init(_ limit: Duration, from start: Duration) {
            self.start = start
            end = start + min(limit, RefreshPolicy.longestLifetime)
        }

        var hasPassed: Bool { end <= start }
    }

    /// A change of the alarm.
    enum Alarm: Sendable {
        case ring(at: Duration)
        case never
    }

    /// A call's place in the line.
    struct Position: Sendable {
        let segment: Int
        let call: Int
    }
}

extension CallbackLine.StateMachine {
    /// Stores the limit of the last call in the line, if the call may have to wait.
    mutating func keep(_ limit: CallbackLine.Limit) {
        if !isReady {
            if limits.count >= limitsUntilPurge {
                limits.purge { [first] in $0.segment < first }
                limitsUntilPurge = max(Self.fewLimits, 2 * limits.count)
            }
            limits.insert(.init(segment: end - 1, call: self[end - 1].count - 1), at: limit.end)
        }
        // The line doesn't rely on alarms: every event compares the limits.
        expire(at: limit.start)
    }

    /// Answers the calls whose limit has passed out of turn: with their answer if there is one, or else with the limit's error.
    mutating func expire(at now: Duration) {
        var due: [CallbackLine.Position] = []
        while let position = limits.removeEarliest(until: now) {
            if position.segment >= first { due.append(position) }
        }
        guard !due.isEmpty else { return }
        var late = Segment(.late)
        for position in due.sorted(by: { ($0.segment, $0.call) < ($1.segment, $1.call) }) {
            let leaving = self[position.segment].takeCall(at: position.call)
            if let answer = self[position.segment].answer {
                answerOutOfTurn(leaving, with: answer)
            } else {
                late.append(leaving, using: &buffers.calls)
            }
        }
        if late.count > 0 { outOfTurn.append(late) }
    }

    /// Returns how to change the alarm; `nil`: it stays.
    mutating func nextAlarm() -> CallbackLine.Alarm? {
        let next = limits.earliest
        guard next != nil || isAlarmSet else { return nil }
        isAlarmSet = next != nil
        return next.map { .ring(at: $0) } ?? .never
    }

    mutating func answerOutOfTurn(_ call: CallbackLine.Call, with answer: Result<AccessToken, any Error>) {
        var segment = Segment(.answered(answer))
        segment.append(call, using: &buffers.calls)
        outOfTurn.append(segment)
    }
}
