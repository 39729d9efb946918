import TokenServiceConcurrency

/// Counts the exchanges with a server, and lets tasks wait until a number of them have begun.
final class ExchangeCounter: Sendable {
    private let state = Lock((begun: 0, waiting: [Int: [SingleResult<Void>]]()))

    /// An exchange begins.
    func begin() {
        let woken = state.withLock { state in
            state.begun += 1
            return state.waiting.removeValue(forKey: state.begun) ?? []
        }
        for gate in woken { gate.complete(with: .success(())) }
    }

    /// Waits until that many exchanges have begun, or no more will begin.
    func wait(for count: Int) async {
        let gate = SingleResult<Void>()
        let waits = state.withLock { state in
            if state.begun < count { state.waiting[count, default: []].append(gate) }
            return state.begun < count
        }
        if waits { try? await gate.value() }
    }

    /// There will be no more exchanges.
    func endWaits() {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            return state.waiting.values.flatMap { $0 }
        }
        for gate in waiting { gate.complete(with: .success(())) }
    }
}
