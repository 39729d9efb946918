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
