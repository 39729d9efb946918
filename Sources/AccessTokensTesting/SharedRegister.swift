import Interleavings

/// The allowed answers of a shared store: a register whose content is replaced only by a caller that knows the current content.
///
/// Contents stand for revisions: the trial writes no content twice, and compares contents and revisions itself.
struct SharedRegister: SequentialSpecification {
    enum Operation: Sendable {
        case load
        case swap(String, ifAt: String?)
    }

    enum Outcome: Sendable, Hashable {
        case record(String?)
        case done
        case conflict(String?)
        /// A load that threw: it proves nothing and changes nothing.
        case failed
    }

    let initialState: String?

    func states(after operation: Operation, returning outcome: Outcome?, in content: String?) -> [String?] {
        switch (operation, outcome) {
        case (.load, .record(let seen)): seen == content ? [content] : []
        case (.load, .failed), (.load, nil): [content]
        case (.swap(let new, let expected), .done): content == expected ? [new] : []
        case (.swap(_, let expected), .conflict(let seen)): content != expected && seen == content ? [content] : []
        case (.swap(let new, let expected), nil): [content == expected ? new : content]
        default: []
        }
    }

    func expectation(of operation: Operation, in content: String?) -> String? {
        switch operation {
        case .load: "record(\(content ?? "none"))"
        case .swap(_, let expected): content == expected ? "done" : "conflict(\(content ?? "none"))"
        }
    }
}
