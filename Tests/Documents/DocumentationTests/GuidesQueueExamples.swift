import AccessTokens
import Dispatch
import Synchronization
import TestBudgets
import Testing

// The articles' last stage in “Avoiding races”, in our own words, run. `GuideTests` compares the page with this file.

private enum Stage3 {
    // @unchecked: `token` and `waiting` are touched on the queue only.
    final class TokenCache: @unchecked Sendable {
        typealias Handler = @Sendable (Result<AccessToken, any Error>) -> Void

        private let load: @Sendable (@escaping Handler) -> Void
        private let queue: DispatchQueue
        private var token: AccessToken?
        private var waiting: [Handler] = []

        init(
            queue: DispatchQueue,
            load: @escaping @Sendable (@escaping Handler) -> Void
        ) {
            self.queue = queue
            self.load = load
        }

        func retrieveToken(then handler: @escaping Handler) {
            queue.async { [weak self] in self?.retrieve(handler) }
        }

        func signOut() {
            queue.async { [weak self] in self?.token = nil }
        }

        private func retrieve(_ handler: @escaping Handler) {
            if let token, token.isValid { return handler(.success(token)) }
            waiting.append(handler)
            guard waiting.count == 1 else { return }
            load { [weak self, queue] result in
                queue.async { [weak self] in self?.finish(with: result) }
            }
        }

        private func finish(with result: Result<AccessToken, any Error>) {
            token = try? result.get()
            let answered = waiting
            waiting = []
            for handler in answered { handler(result) }
        }
    }
}

private func name(_ result: Result<AccessToken, any Error>) -> String { (try? result.get())?.value ?? "error" }

@Suite(.inRealTime) struct `Avoiding races: the articles' last stage` {
    private let queue = DispatchQueue(label: "test")
    private let network = Network()
    private let answers = GuideLog()

    private final class Network: Sendable {
        private let handlers = Mutex<[Stage3.TokenCache.Handler]>([])

        var loads: Int { handlers.withLock { $0.count } }

        func load(then handler: @escaping Stage3.TokenCache.Handler) { handlers.withLock { $0.append(handler) } }

        func answer(with token: String) { handlers.withLock { $0 }.first?(.success(AccessToken(token))) }
    }

    private func makeCache() -> Stage3.TokenCache {
        Stage3.TokenCache(queue: queue) { [network] in network.load(then: $0) }
    }

    private func answer(with token: String) {
        network.answer(with: token)
        queue.sync {}
    }

    @Test func `stage 3 loads once and answers in order, from any thread`() {
        let cache = makeCache()
        for caller in ["Anna", "Ben"] { cache.retrieveToken { [answers] in answers.add("\(caller) \(name($0))") } }
        queue.sync {}
        answer(with: "a")
        #expect(answers.lines == ["Anna a", "Ben a"] && network.loads == 1)
    }

    @Test func `a sign-out during a load is undone by the load's result`() {
        let cache = makeCache()
        cache.retrieveToken { _ in }
        cache.signOut()
        queue.sync {}
        answer(with: "from before the sign-out")
        cache.retrieveToken { [answers] in answers.add(name($0)) }
        queue.sync {}
        #expect(answers.lines == ["from before the sign-out"])
    }

    @Test func `stage 3 never answers if it is released during a load`() {
        var cache: Stage3.TokenCache? = makeCache()
        cache?.retrieveToken { [answers] in answers.add(name($0)) }
        queue.sync {}
        cache = nil
        answer(with: "a")
        #expect(cache == nil && answers.lines == [])
    }

    @Test func `a second answer of one load overwrites the token`() {
        let cache = makeCache()
        cache.retrieveToken { _ in }
        queue.sync {}
        answer(with: "a")
        answer(with: "b")
        cache.retrieveToken { [answers] in answers.add(name($0)) }
        queue.sync {}
        #expect(answers.lines == ["b"])
    }

    @Test func `a load without an answer blocks all later callers`() {
        let cache = makeCache()
        for _ in 1...10 { cache.retrieveToken { [answers] in answers.add(name($0)) } }
        queue.sync {}
        #expect(answers.lines == [] && network.loads == 1)
    }
}
