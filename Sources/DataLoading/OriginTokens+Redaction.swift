/// What bound tokens say of themselves: where they go, not what they are.
extension OriginTokens: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The origins that get tokens.
    public var description: String {
        "OriginTokens(for \(services.keys.map { "\($0)" }.sorted().joined(separator: ", ")))"
    }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror of the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
