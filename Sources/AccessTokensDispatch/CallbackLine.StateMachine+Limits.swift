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
}

extension CallbackLine.StateMachine {
    /// Stores a call's limit, if the call may have to wait.
    mutating func keep(_ limit: CallbackLine.Limit, of place: CallbackLine.Position) {
        if !isReady {
            if limits.count >= limitsUntilPurge {
                limits.purge { [first] in $0.segment < first }
                limitsUntilPurge = max(Self.fewLimits, 2 * limits.count)
            }
            limits.insert(place, at: limit.end)
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
        for position in due.sorted(by: { ($0.segment, $0.call) < ($1.segment, $1.call) }) {
            // A cancelled call leaves its limit behind.
            guard let leaving = self[position.segment].takeCall(at: position.call) else { continue }
            let answer = self[position.segment].answer ?? .failure(TokenServiceError(.deadlineExceeded))
            answerOutOfTurn(leaving, at: position, with: answer)
            if let waiter = desertedWaiter(of: position.segment) { deserted.append((position.segment, waiter)) }
        }
    }

    mutating func takeDeserted() -> [(segment: Int, waiter: TokenService.CallbackPlace)] {
        guard !deserted.isEmpty else { return [] }
        defer { deserted = [] }
        return deserted
    }

    /// Returns how to change the alarm; `nil`: it stays.
    mutating func nextAlarm() -> CallbackLine.Alarm? {
        let next = limits.earliest
        guard next != nil || isAlarmSet else { return nil }
        isAlarmSet = next != nil
        return next.map { .ring(at: $0) } ?? .never
    }

    /// - Parameter place: The call's place; `nil`: it never was in the line.
    @discardableResult
    mutating func answerOutOfTurn(
        _ call: CallbackLine.Call, at place: CallbackLine.Position? = nil, with answer: Result<AccessToken, any Error>
    ) -> CallbackLine.Position {
        if place == nil { besides += 1 }
        var segment = Segment(.answered(answer), at: place ?? .beside(besides))
        segment.append(call, using: &buffers.calls)
        outOfTurn.append(segment)
        return segment.place
    }
}
