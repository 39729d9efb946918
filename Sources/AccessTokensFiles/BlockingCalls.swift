import Dispatch
import TokenServiceConcurrency

/// Calls that wait for the disk, one after another in the order in which they come, on a queue of their own.
package struct BlockingCalls: Sendable {
    private let queue: DispatchQueue

    package init(_ label: String) {
        queue = DispatchQueue(label: label)
    }

    package func perform<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        let answer = SingleResult<Value>()
        queue.async { answer.complete(with: Result { try body() }) }
        return try await answer.value()
    }

    /// Tells the names of the keys whose directories have a file, on a thread of its own; see `KeyFolder`.
    package static func names(
        in directory: String, having file: String, _ body: @escaping @Sendable (String) -> Void
    ) async throws {
        try await BlockingCalls("AccessTokensFiles.names").perform { try KeyFolder.names(in: directory, having: file, body) }
    }

    /// The same, all at once.
    package static func names(in directory: String, having file: String) async throws -> [String] {
        try await BlockingCalls("AccessTokensFiles.names").perform {
            var names: [String] = []
            try KeyFolder.names(in: directory, having: file) { names.append($0) }
            return names
        }
    }
}
