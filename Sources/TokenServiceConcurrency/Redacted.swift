/// A type whose `description` is its `text`; outside of the package only `CustomStringConvertible` is seen.
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
/// The public types of our modules conform to it; outside of the package only the three protocols are seen.
package protocol Redacted: Described, CustomDebugStringConvertible, CustomReflectable {}

extension Redacted {
    /// Same as `description`, so debuggers show no secret either.
    public var debugDescription: String { description }

    /// A mirror of the description alone: an actor's state is not read from outside, an error's cause not shown.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["description": description], displayStyle: Self.self is any AnyObject.Type ? .class : .struct,
            ancestorRepresentation: .suppressed)
    }
}
