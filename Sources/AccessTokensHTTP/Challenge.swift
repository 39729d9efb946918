/// One challenge of a `WWW-Authenticate` header.
///
/// Source: RFC 9110 §11.6.1.
package struct Challenge: Sendable, Hashable {
    package let scheme: String
    package let token68: String?
    /// The parameters by their names in lower case.
    package let parameters: [String: String]

    package init(scheme: String, token68: String?, parameters: [String: String]) {
        self.scheme = scheme
        self.token68 = token68
        self.parameters = parameters
    }

    /// The value of a parameter, whose name is compared without case (RFC 9110 §11.2).
    package subscript(parameter: String) -> String? { parameters[parameter.lowercased()] }

    /// Returns whether the challenge is of that scheme, compared without case (RFC 9110 §11.1).
    package func hasScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }

    /// Returns the challenges of a header's value, or of several values joined by commas, in their order.
    package static func challenges(in header: String) -> [Challenge] {
        var parser = ChallengeParser(header)
        return parser.challenges()
    }
}
