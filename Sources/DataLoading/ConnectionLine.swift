import TokenServiceConcurrency
import AccessTokensHTTP

/// Limits the number of messages to one origin that have connections of their own at a time; the others wait in line.
///
/// Each of these connections is in its own session, so no session can enforce the limit.
final class ConnectionLine: Sendable {
    /// One of the connections that an origin may have; releasing it returns the connection.
    final class Place: Sendable {
        private let line: ConnectionLine
        private let origin: Origin

        fileprivate init(in line: ConnectionLine, for origin: Origin) {
            self.line = line
            self.origin = origin
        }

        deinit {
            line.free(origin)
        }
    }

    /// Called when a message gets a place.
    typealias Start = @Sendable (Place) -> Void

    private struct Line {
        var places = 0
        var waiting: [(number: Int, start: Start)] = []
    }

    private struct State {
        var lastNumber = 0
        var lines: [Origin: Line] = [:]
    }

    private let limit: Int
    private let state = Lock(State())

    /// Creates a line with a limit of connections to each origin, at least one.
    init(limit: Int) {
        self.limit = max(limit, 1)
    }

    /// Calls `start` with a place, now or when its turn comes; returns the number to pass to ``leave(_:for:)``.
    func enter(for origin: Origin, _ start: @escaping Start) -> Int {
        let (number, isFree) = state.withLock { state in
            state.lastNumber += 1
            var line = state.lines[origin] ?? Line()
            defer { state.lines[origin] = line }
            guard line.places < limit else {
                line.waiting.append((state.lastNumber, start))
                return (state.lastNumber, false)
            }
            line.places += 1
            return (state.lastNumber, true)
        }
        if isFree { start(Place(in: self, for: origin)) }
        return number
    }

    /// Leaves the line, if the message has no place yet.
    func leave(_ number: Int, for origin: Origin) {
        // Release the closure after unlocking: that may run foreign code.
        _ = state.withLock { state -> Start? in
            guard let index = state.lines[origin]?.waiting.firstIndex(where: { $0.number == number }) else { return nil }
            return state.lines[origin]?.waiting.remove(at: index).start
        }
    }

    private func free(_ origin: Origin) {
        let next = state.withLock { state -> Start? in
            guard var line = state.lines[origin] else { return nil }
            if line.waiting.isEmpty { line.places -= 1 }
            let next = line.waiting.isEmpty ? nil : line.waiting.removeFirst().start
            state.lines[origin] = line.places == 0 ? nil : line
            return next
        }
        next?(Place(in: self, for: origin))
    }
}
