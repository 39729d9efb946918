import TokenServiceHTTP

/// A number of seconds, for which some servers send a string.
enum ServerSeconds: Decodable {
    case seconds(Duration)
    case negative
    case unreadable

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        let seconds = (try? value.decode(Double.self)) ?? (try? value.decode(String.self)).flatMap(Double.init(decimal:))
        guard let seconds, seconds.isFinite else {
            self = .unreadable
            return
        }
        self = Duration.seconds(read: seconds).map(Self.seconds) ?? .negative
    }

    /// The time, if it is one.
    var duration: Duration? {
        if case .seconds(let duration) = self { duration } else { nil }
    }
}

extension Double {
    /// Reads decimal digits alone: the initializer for any text takes "nan", "inf" and hexadecimal numbers too.
    fileprivate init?(decimal text: String) {
        guard text.utf8.allSatisfy({ "0123456789.eE+-".utf8.contains($0) }) else { return nil }
        self.init(text)
    }
}
