/// The options of a mode, declared once.
struct Usage: Sendable {
    /// The option that selects the mode; `nil`: it is the default.
    let option: String?
    /// The other options that it takes.
    let others: [String]
    let mode: @Sendable (Given) throws(UsageError) -> Options.Mode

    static let all = [
        Usage(option: nil, others: ["--callers", "--json"], mode: Options.Mode.contrast),
        Usage(option: "--show", others: ["--page"], mode: Options.Mode.show),
        Usage(
            option: "--token-url",
            others: [
                "--client-id", "--authentication", "--assertion-command", "--scope", "--callers", "--expiries", "--seconds",
                "--json",
            ],
            mode: Options.Mode.server),
        Usage(option: "--museum", others: []) { _ in .museum },
    ]

    /// The options without a value.
    static let flags = ["--json", "--museum"]
    /// The options with a value.
    static let names = Set(all.flatMap { [$0.option].compactMap(\.self) + $0.others }).subtracting(flags)

    private init(
        option: String?, others: [String], mode: @escaping @Sendable (Given) throws(UsageError) -> Options.Mode
    ) {
        self.option = option
        self.others = others
        self.mode = mode
    }

    /// Determines the mode of a command line.
    ///
    /// - Throws: An error if there are several, or an option that the mode would ignore; the error says which options go
    ///   together.
    init(of given: Given) throws(UsageError) {
        let asked = Self.all.filter { $0.option.map(given.has) ?? false }
        guard let usage = asked.first ?? Self.all.first else { throw UsageError("there is no mode") }
        if asked.count > 1 {
            let options = asked.compactMap(\.option).formatted("and")
            throw UsageError("\(options) don't go together: give one of them")
        }
        self = usage
        guard let stray = given.options.first(where: { $0 != usage.option && !usage.others.contains($0) }) else { return }
        if let option = usage.option {
            let taken = usage.others.isEmpty ? "no other option" : "only \(usage.others.formatted("and"))"
            throw UsageError("\(option) takes \(taken): leave out \(stray)")
        }
        let modes = Self.all.filter { $0.others.contains(stray) }.compactMap(\.option)
        throw UsageError("\(stray) goes with \(modes.formatted("or")): give that as well")
    }
}

/// The options of a command line, with their values as texts.
struct Given {
    /// The options, in the order in which they were given.
    private(set) var options: [String] = []
    private var values: [String: String] = [:]

    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts.first ?? ""
            if Usage.flags.contains(name) {
                guard parts.count == 1 else { throw UsageError("\(name) takes no value") }
            } else if Usage.names.contains(name) {
                guard let value = parts.count == 2 ? parts[1] : rest.popFirst(), !value.isEmpty, !value.hasPrefix("--") else {
                    throw UsageError("\(name) needs a value")
                }
                values[name] = value
            } else {
                throw Self.unknown(name)
            }
            guard !has(name) else { throw UsageError("\(name) is given twice") }
            options.append(name)
        }
    }

    subscript(name: String) -> String? { values[name] }

    func has(_ name: String) -> Bool { options.contains(name) }

    func number(_ name: String, upTo limit: Int) throws(UsageError) -> Int? {
        guard let text = values[name] else { return nil }
        guard let number = Int(text), (1...limit).contains(number) else {
            throw UsageError("\(name) expects a whole number from 1 to \(limit)")
        }
        return number
    }

    /// Reports an unknown argument; repeats the argument only if it looks like an option's name, since anything else may be a
    /// secret.
    private static func unknown(_ name: String) -> UsageError {
        let isName = name.wholeMatch(of: /-[A-Za-z]|--[a-z][a-z-]{1,23}/) != nil
        let what = isName ? "unknown option '\(name)'" : "unexpected argument (not repeated here: it may be a secret)"
        return UsageError(name.contains("secret") ? "\(what): \(Credentials.advice)" : what)
    }
}

extension [String] {
    /// Returns the elements as a list in a sentence: `a`, `a and b`, `a, b and c`.
    fileprivate func formatted(_ conjunction: String) -> String {
        guard let last, count > 1 else { return last ?? "" }
        return "\(dropLast().joined(separator: ", ")) \(conjunction) \(last)"
    }
}
