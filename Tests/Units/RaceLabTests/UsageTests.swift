import Testing

@testable import race_lab

@Suite struct `Options that go together` {
    /// An option and another one that its mode would ignore.
    struct Stray: CustomTestStringConvertible, Sendable {
        /// `nil`: no mode was asked for.
        let mode: String?
        let other: String

        var testDescription: String { "\(mode ?? "no mode") with \(other)" }

        static let all = Usage.all.flatMap { usage in
            let modes = Usage.all.compactMap(\.option), others = Usage.all.flatMap(\.others)
            return Set(others + (usage.option == nil ? [] : modes)).subtracting(usage.others + [usage.option].compactMap(\.self))
                .sorted().map { Stray(mode: usage.option, other: $0) }
        }
    }

    private func arguments(_ options: [String]) -> [String] {
        options.flatMap { option in
            let values = [
                "--show": "stage 2", "--token-url": "https://a.example/", "--authentication": "post", "--assertion-command": "/a",
            ]
            return Usage.flags.contains(option) ? [option] : [option, values[option] ?? "3"]
        }
    }

    /// Two ways to say the same thing.
    static let alternatives = ["--authentication", "--assertion-command"]

    @Test(arguments: Usage.all.map { [$0.option].compactMap(\.self) + $0.others }, alternatives)
    func `each mode takes all its options together, but only one of two alternatives`(_ options: [String], _ chosen: String)
        throws
    {
        let options = options.filter { $0 == chosen || !Self.alternatives.contains($0) }
        #expect(throws: Never.self) { try Options(parsing: arguments(options)) }
        #expect(throws: Never.self) { try Options(parsing: arguments(options.reversed())) }
    }

    @Test(arguments: Stray.all)
    func `an option that would be ignored is an error, which says in a line what goes together`(_ stray: Stray) throws {
        let options = [stray.mode, stray.other].compactMap(\.self)
        for options in [options, options.reversed()] {
            let error = try #require(throws: UsageError.self) { try Options(parsing: arguments(options)) }
            let text = error.description
            #expect(options.allSatisfy(text.contains) && !text.contains("\n"), "\(text)")
            #expect(["leave out", "give one of them", "give that as well"].contains { text.contains($0) }, "\(text)")
        }
    }

    @Test(
        arguments: [
            (["--museum", "--json"], "--museum takes no other option: leave out --json"),
            (["--page=page.html", "--museum"], "--museum takes no other option: leave out --page"),
            (["--show", "stage 2", "--json"], "--show takes only --page: leave out --json"),
            (["--seconds", "5"], "--seconds goes with --token-url: give that as well"),
            (["--page", "page.html"], "--page goes with --show: give that as well"),
            (
                ["--token-url", "https://a.example/", "--client-id", "me"] + alternatives.flatMap { [$0, "post"] },
                "--authentication and --assertion-command don't go together: give one of them"
            ),
            (["--show", "stage 2", "--museum"], "--show and --museum don't go together: give one of them"),
        ])
    func `an error about options that don't go together says which do`(_ arguments: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try Options(parsing: arguments) }
    }
}
