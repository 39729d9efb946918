import AccessTokens
import AccessTokensTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct ScriptedLoaderCallbackTests {
    let loader = ScriptedLoader()
    let answers = Log<String>()

    private func load() {
        loader.load { [answers] in answers.append((try? $0.get().value) ?? "failure") }
    }

    @Test func `a handler gets every answer, as from a badly behaved loader`() async throws {
        load()
        let call = try await loader.nextCall()
        #expect(call.previous == nil)
        #expect(loader.unansweredCount == 1)
        #expect(answers.entries.isEmpty)
        call.succeed(with: AccessToken("first"))
        #expect(loader.unansweredCount == 0)
        call.succeed(with: AccessToken("second"))
        call.fail(with: ScriptedFailure.transient)
        #expect(answers.entries == ["first", "second", "failure"])
        #expect(loader.loadCount == 1)
    }

    @Test func `a handler may call its loader from within`() async throws {
        loader.load { [loader, answers] _ in
            answers.append("\(loader.loadCount) \(loader.unansweredCount)")
            loader.load { _ in }
        }
        try await loader.nextCall().succeed(with: AccessToken("first"))
        #expect(answers.entries == ["1 0"])
        #expect(loader.loadCount == 2)
    }

    @Test func `an unanswered handler is kept, even if the test releases its call`() async throws {
        let isAlive = loadWithWitness()
        #expect(isAlive())
        _ = try await loader.nextCall()
        #expect(isAlive())
        #expect(loader.unansweredCount == 1)
    }

    @Test func `an answered handler is kept as long as the test can answer it again`() async throws {
        let isAlive = loadWithWitness()
        try await { [loader] in
            let call = try await loader.nextCall()
            call.succeed(with: AccessToken("first"))
            #expect(isAlive())
            call.succeed(with: AccessToken("second"))
        }()
        #expect(!isAlive())
    }

    @Test(arguments: [true, false])
    func `the test can release a handler, answered or not`(_ isAnswered: Bool) async throws {
        let isAlive = loadWithWitness()
        let call = try await loader.nextCall()
        if isAnswered { call.succeed(with: AccessToken("first")) }
        call.dropHandler()
        #expect(!isAlive())
        #expect(loader.unansweredCount == 0)
        call.succeed(with: AccessToken("not delivered"))
    }

    @Test func `a handler is released with its loader`() {
        var loader: ScriptedLoader? = ScriptedLoader()
        let isAlive = loader.map(loadWithWitness(on:))
        #expect(isAlive?() == true)
        loader = nil
        #expect(isAlive?() == false)
    }

    @Test func `an async load has no handler to release`() async throws {
        let stage = Stage()
        let load = stage.start { [loader] in try await loader.loadToken(replacing: nil) }
        let call = try await loader.nextCall()
        call.dropHandler()
        #expect(loader.unansweredCount == 1)
        call.succeed(with: AccessToken("first"))
        stage.run()
        #expect(load.value == AccessToken("first"))
    }

    private final class Witness: Sendable {}

    private func loadWithWitness() -> () -> Bool { loadWithWitness(on: loader) }

    /// Begins a load and returns whether its handler is alive.
    private func loadWithWitness(on loader: ScriptedLoader) -> () -> Bool {
        let witness = Witness()
        loader.load { _ in withExtendedLifetime(witness) {} }
        return { [weak witness] in witness != nil }
    }
}
