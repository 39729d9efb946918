import Interleavings
import TokenServiceConcurrency

/// An event of a history written by hand: a call or a return.
enum Event<Specification: SequentialSpecification> {
    case call(String, Specification.Operation)
    case back(String, Specification.Outcome)
}

func history<Specification>(
    _ specification: Specification, _ events: Event<Specification>...
) -> History<Specification> {
    let history = History(specification)
    var open: [String: History<Specification>.Call] = [:]
    for event in events {
        switch event {
        case .call(let caller, let operation): open[caller] = history.begin(caller, operation)
        case .back(let caller, let outcome): open[caller]?.end(returning: outcome)
        }
    }
    return history
}

extension LinearizabilityVerdict {
    var isLinearizable: Bool {
        if case .linearizable = self { true } else { false }
    }

    var report: String? {
        if case .notLinearizable(let error) = self { error.description } else { nil }
    }

    var isUndecided: Bool {
        if case .undecided = self { true } else { false }
    }
}
