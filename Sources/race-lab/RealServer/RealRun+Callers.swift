import AccessTokens
import AccessTokensDispatch
import Dispatch
import TokenServiceConcurrency

extension RealRun {
    /// Lets the async callers ask; returns when the run is over.
    func askAsync() async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<callers { group.addTask { await self.askAgainAndAgain() } }
        }
    }

    private func askAgainAndAgain() async {
        var isFirst = true
        while !isOver.withLock({ $0 }) {
            let start = clock.now
            do {
                _ = try await service.retrieveToken()
                let latency = start.duration(to: clock.now)
                asyncTally.withLock { $0.answered(after: latency, isFirst: isFirst) }
                isFirst = false
            } catch {
                // A call that fails because the run ends does not count.
                if !isOver.withLock({ $0 }) { asyncTally.withLock { $0.failed() } }
            }
            try? await Task.sleep(for: pause)
        }
    }

    /// Lets the callback callers ask; returns when the run is over and each has its last answer.
    func askWithCallbacks() async {
        let group = DispatchGroup()
        for _ in 0..<callers {
            group.enter()
            ask(isFirst: true) { group.leave() }
        }
        await withCheckedContinuation { continuation in
            group.notify(queue: .global()) { continuation.resume() }
        }
    }

    private func ask(isFirst: Bool, atEnd end: @escaping @Sendable () -> Void) {
        let start = clock.now
        callbacks.retrieveToken { [self] result in
            if isOver.withLock({ $0 }) { return end() }
            let latency = start.duration(to: clock.now)
            callbackTally.withLock { tally in
                if case .success = result { tally.answered(after: latency, isFirst: isFirst) } else { tally.failed() }
            }
            let isServed = if case .success = result { true } else { !isFirst }
            DispatchQueue.global().asyncAfter(deadline: .now() + pause / .seconds(1)) { [self] in
                if isOver.withLock({ $0 }) { end() } else { ask(isFirst: !isServed, atEnd: end) }
            }
        }
    }
}
