import Dispatch
import TokenServiceConcurrency

/// Runs calls that wait for the disk, one after another in the order of the calls, on a queue of its own.
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

    /// Calls `body` with the names of `KeyFolder.names(in:having:_:)`, on a thread of its own.
    package static func names(
        in directory: String, having file: String, _ body: @escaping @Sendable (String) -> Void
    ) async throws {
        try await BlockingCalls("AccessTokensFiles.names").perform { try KeyFolder.names(in: directory, having: file, body) }
    }

    /// Returns the same names, all at once.
    package static func names(in directory: String, having file: String) async throws -> [String] {
        try await BlockingCalls("AccessTokensFiles.names").perform {
            var names: [String] = []
            try KeyFolder.names(in: directory, having: file) { names.append($0) }
            return names
        }
    }
}
