import AccessTokens

/// The scopes that step-ups have gained, as a pure value: they accumulate, so that no step-up removes what an earlier one gained.
///
/// They are compared without case, since some servers list them in another one.
///
/// Source: RFC 6750 §3.1; RFC 6749 §3.3 for what a scope is.
struct StepUpScopes: Sendable {
    /// Longer than any resource needs, and short enough for a URL.
    private static let longest = 4096

    private let base: [Substring]
    /// The scopes that the last step-up asked for, the digest of its token, and the generation that began with the token.
    private var gained: (scopes: [Substring], token: Int?, generation: Int) = ([], nil, 0)

    init(base: String?) {
        self.base = (base ?? "").split(separator: " ")
    }

    /// All scopes known to be granted.
    var text: String { Self.joined(base + gained.scopes) }

    /// Whether asking for a scope again would bring the service's current token no more.
    ///
    /// The token is known to have the scope, or it is the last step-up's own, which was asked for with it: a server may list its
    /// scopes in other words.
    func have(_ wanted: String, _ token: AccessToken, generation: Int?) -> Bool {
        let isOfSession = generation == gained.generation
        if Self.covers(token.scope ?? (isOfSession ? text : ""), wanted) { return true }
        return isOfSession && gained.token == token.value.hashValue && Self.covers(Self.joined(gained.scopes), wanted)
    }

    /// Returns the scopes to ask for: the program's, the token's, those that step-ups have gained since, and the wanted ones.
    ///
    /// - Parameter generation: The service's current generation, since another sign-in has its own scopes; `nil` if none were
    ///   gained in it.
    func asking(for wanted: String, beyond scope: String?, generation: Int?) -> String {
        let known = base + Self.split(scope ?? ""), wanted = wanted.split(separator: " ")
        var gained = generation == self.gained.generation ? self.gained.scopes : []
        // A server may name ever more scopes: the oldest are left out.
        while !gained.isEmpty, Self.joined(known + gained + wanted).utf8.count > Self.longest { gained.removeFirst() }
        return Self.joined(known + gained + wanted)
    }

    /// Forgets scopes that a step-up has asked for in vain.
    mutating func lose(_ wanted: String) { gained.scopes.removeAll { Self.covers(wanted, String($0)) } }

    /// Notes what a step-up has gained, in the generation that began with its token.
    mutating func gain(_ scope: String, by token: AccessToken, generation: Int) {
        gained = (scope.split(separator: " "), token.value.hashValue, generation)
    }

    /// Whether a token's scopes include the wanted ones; `nil` counts as the requested ones.
    static func covers(_ scope: String?, _ wanted: String) -> Bool {
        scope.map { Set(split(wanted.lowercased())).isSubset(of: split($0.lowercased())) } ?? true
    }

    /// Some servers separate the scopes in their lists by commas.
    private static func split(_ scopes: String) -> [Substring] { scopes.split { $0 == " " || $0 == "," } }

    /// Returns the scope that a server requires, if it is valid.
    static func valid(_ scope: String?) -> String? {
        guard let scope, scope.utf8.count <= longest, scope.contains(where: { $0 != " " }),
            scope.utf8.allSatisfy({ 0x20...0x7E ~= $0 && $0 != 0x22 && $0 != 0x5C })
        else { return nil }
        return scope
    }

    private static func joined(_ scopes: [Substring]) -> String {
        var seen: Set<Substring> = []
        return scopes.filter { seen.insert($0).inserted }.joined(separator: " ")
    }
}
