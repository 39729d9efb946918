public import Foundation
import TokenServiceConcurrency

extension Request {
    /// The body of a request, and whether it can be sent twice.
    ///
    /// A request that was refused because its token had expired is sent again with a new one, and a redirect may ask for the body
    /// again. Both need a body that can be read again.
    public struct Body: Sendable {
        /// Opens a stream for sending the body once.
        typealias Opening = @Sendable () -> InputStream?

        enum Source: Sendable {
            case data(Data)
            case stream(Opening)
        }

        let source: Source

        /// Whether the body may be sent more than once in one run of the request.
        let isReplayable: Bool

        /// A body in memory, which can be sent any number of times.
        public static func data(_ data: Data) -> Body { Body(source: .data(data), isReplayable: true) }

        /// A body that is read from a stream while it is sent, in chunks.
        ///
        /// - Parameters:
        ///   - isReplayable: Whether every call of `opening` gives the same bytes from the beginning, as with a file.
        ///   - opening: Opens a new stream for each sending, on any thread; `nil` if there is none left.
        public static func stream(isReplayable: Bool, opening: @escaping @Sendable () -> InputStream?) -> Body {
            Body(source: .stream(opening), isReplayable: isReplayable)
        }
    }
}

/// The description shows only the body's size: a form may contain a password.
extension Request.Body: Redacted {
    /// Its length, or that it is a stream; not its contents.
    package var text: String {
        switch source {
        case .data(let data): "Body(\(data.count) bytes)"
        case .stream: "Body(a stream\(isReplayable ? ", replayable" : ""))"
        }
    }
}
