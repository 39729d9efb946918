import Dispatch
import TokenServiceConcurrency

/// What comes when the execution is over still ends, one piece at a time, so that nothing hangs.
extension Engine {
    /// What never ends is dropped after so many pieces.
    private static let mostLatePieces = 100_000

    func runLate(_ work: Work) {
        aftermath?.async { self.run(work) }
    }

    /// Not at once, which would not suspend: a loop that sleeps must not run hot for ever.
    func endLate(_ suspension: Suspension) {
        aftermath?.async { suspension.end(.cancelled) }
    }

    private var aftermath: DispatchQueue? {
        state.withLock { state in
            state.latePieces += 1
            guard state.latePieces < Self.mostLatePieces else { return nil }
            if let queue = state.aftermath { return queue }
            let queue = DispatchQueue(label: "interleavings.aftermath")
            state.aftermath = queue
            return queue
        }
    }
}
