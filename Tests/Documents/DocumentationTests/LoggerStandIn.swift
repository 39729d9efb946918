/// What the guide to logging and the README use of swift-log, with its signatures; it writes lines for the tests.
struct Logger: Sendable {
    enum Level: Sendable { case trace, debug, info, notice, warning, error, critical }

    struct Message: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
        let text: String

        init(stringLiteral value: String) { text = value }
    }

    struct MetadataValue: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
        let text: String

        init(stringLiteral value: String) { text = value }
    }

    typealias Metadata = [String: MetadataValue]

    let label: String
    private let write: @Sendable (String) -> Void

    init(label: String, _ write: @escaping @Sendable (String) -> Void) {
        (self.label, self.write) = (label, write)
    }

    func log(
        level: Level, _ message: @autoclosure () -> Message, metadata: @autoclosure () -> Metadata? = nil
    ) {
        let fields = (metadata() ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value.text)" }
        write("\(level) \(message().text)\(fields.joined())")
    }
}
