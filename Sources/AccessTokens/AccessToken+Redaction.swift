/// What a token says of itself: everything but its secrets.
extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The token's type, lifetime and scope; never its string or its refresh token.
    public var description: String {
        var parts = ["\(LogText.line(tokenType)) token"]
        if let lifetime { parts.append("lifetime \(lifetime)") }
        if let scope { parts.append("scope \(LogText.line(scope))") }
        if refreshToken != nil { parts.append("with a refresh token") }
        return "AccessToken(\(parts.joined(separator: ", ")))"
    }

    /// The same as ``description``: a debugger's log is a log.
    public var debugDescription: String { description }

    /// A mirror without the secrets, so that `dump` and test failures don't show them either.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description], displayStyle: .struct)
    }
}
