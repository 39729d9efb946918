import AccessTokens
import Testing

// The articles' first two stages in “Avoiding races”, in our own words, run. `GuideTests` compares the page with this file.

private enum Stage1 {
    final class TokenCache {
        typealias Handler = (Result<AccessToken, any Error>) -> Void

        private let load: (@escaping Handler) -> Void
        private var token: AccessToken?

        init(load: @escaping (@escaping Handler) -> Void) {
            self.load = load
        }

        func retrieveToken(then handler: @escaping Handler) {
            if let token, token.isValid { return handler(.success(token)) }
            load { result in
                self.token = try? result.get()
                handler(result)
            }
        }
    }
}

private enum Stage2 {
    final class TokenCache {
        typealias Handler = (Result<AccessToken, any Error>) -> Void

        private let load: (@escaping Handler) -> Void
        private var token: AccessToken?
        private var waiting: [Handler] = []

        init(load: @escaping (@escaping Handler) -> Void) {
            self.load = load
        }

        func retrieveToken(then handler: @escaping Handler) {
            if let token, token.isValid { return handler(.success(token)) }
            waiting.append(handler)
            guard waiting.count == 1 else { return }
            load { self.finish(with: $0) }
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

@Suite struct `Avoiding races: the articles' stages` {
    private final class Network {
        private(set) var loads: [(Result<AccessToken, any Error>) -> Void] = []

        func load(then handler: @escaping (Result<AccessToken, any Error>) -> Void) { loads.append(handler) }
    }

    @Test func `stage 1 loads for each caller, answers out of order and keeps the older token`() {
        let network = Network()
        let cache = Stage1.TokenCache(load: network.load)
        var answers: [String] = []
        cache.retrieveToken { answers.append("Anna \(name($0))") }
        cache.retrieveToken { answers.append("Ben \(name($0))") }
        #expect(network.loads.count == 2)
        network.loads[1](.success(AccessToken("issued second")))
        network.loads[0](.success(AccessToken("issued first")))
        cache.retrieveToken { answers.append("Carla \(name($0))") }
        #expect(answers == ["Ben issued second", "Anna issued first", "Carla issued first"])
    }

    @Test func `stage 2 loads once on one thread, and answers in order`() {
        let network = Network()
        let cache = Stage2.TokenCache(load: network.load)
        var answers: [String] = []
        for caller in ["Anna", "Ben"] { cache.retrieveToken { answers.append("\(caller) \(name($0))") } }
        #expect(network.loads.count == 1)
        network.loads[0](.success(AccessToken("a")))
        #expect(answers == ["Anna a", "Ben a"])
    }
}
