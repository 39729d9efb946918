/// The scopes that step-ups have gained, as a pure value: they accumulate, so that no step-up removes what an earlier one gained.
///
/// Source: RFC 6750 §3.1; RFC 6749 §3.3 for what a scope is.
struct StepUpScopes: Sendable {
    /// Longer than any resource needs, and short enough for a URL.
    private static let longest = 4096

    private let base: [Substring]
    /// The scopes gained in the service's session of that generation.
    private var gained: (scopes: [Substring], generation: Int) = ([], 0)

    init(base: String?) {
        self.base = (base ?? "").split(separator: " ")
    }

    /// All scopes known to be granted.
    var text: String { Self.joined(base + gained.scopes) }

    /// Whether the service's current token is known to have a scope.
    ///
    /// - Parameter scope: The token's own list; `nil`: it has the requested ones.
    func have(_ wanted: String, scope: String?, generation: Int?) -> Bool {
        let known = scope ?? (generation == gained.generation ? text : "")
        return Self.covers(known, wanted)
    }

    /// Returns the scopes to ask for: the program's, the token's, those that step-ups have gained since, and the wanted ones.
    ///
    /// - Parameter generation: The service's current generation, since another sign-in has its own scopes; `nil` if none were
    ///   gained in it.
    func asking(for wanted: String, beyond scope: String?, generation: Int?) -> String {
        let gained = generation == self.gained.generation ? self.gained.scopes : []
        return Self.joined(base + (scope ?? "").split(separator: " ") + gained + wanted.split(separator: " "))
    }

    /// Notes what a step-up has gained, in the generation that began with its token.
    mutating func gain(_ scope: String, generation: Int) {
        gained = (scope.split(separator: " "), generation)
    }

    /// Whether a token's scopes include the wanted ones; `nil` counts as the requested ones.
    static func covers(_ scope: String?, _ wanted: String) -> Bool {
        scope.map { Set(wanted.split(separator: " ")).isSubset(of: $0.split(separator: " ")) } ?? true
    }

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
