/// A type whose `description` is its `text`; only `CustomStringConvertible` is visible outside the package.
package protocol Described: CustomStringConvertible {
    /// The printed text.
    var text: String { get }
}

extension Described {
    /// Same as `text`.
    public var description: String { text }
}

/// A type that shows its description and nothing else, so that no print, dump, debugger or failed test shows a secret inside it.
///
/// The public types of our modules conform to it; only the three protocols are visible outside the package.
package protocol Redacted: Described, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
    /// Same as `description`, so debuggers show no secret either.
    public var debugDescription: String { description }

    /// A mirror of only the description, so that an actor's state isn't read from outside and an error's cause isn't shown.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["description": description], displayStyle: Self.self is any AnyObject.Type ? .class : .struct,
            ancestorRepresentation: .suppressed)
    }
}

extension Duration {
    /// The number of seconds, which the standard library rounds: it makes 3599.0000000000005 of 3599.
    package var shown: String {
        let (seconds, attoseconds) = components
        let digits = String(abs(attoseconds)), zeros = String(repeating: "0", count: 18 - digits.count)
        let fraction = (zeros + digits).prefix(9).reversed().drop { $0 == "0" }.reversed()
        return "\(self < .zero && seconds == 0 ? "-" : "")\(seconds).\(fraction.isEmpty ? "0" : String(fraction)) seconds"
    }
}
