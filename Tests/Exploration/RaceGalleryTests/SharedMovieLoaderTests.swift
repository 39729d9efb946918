import RaceGallery
import AccessTokensTesting
import Testing

@Suite struct `One loader for all screens` {
    let stage = Stage()
    let server = ScriptedServer()
    let loader: SharedMovieLoader

    init() {
        loader = SharedMovieLoader { [server] genre in try await server.fetch(genre) }
    }

    func load(_ genre: String) -> Stage.Player<Void> {
        stage.start { [loader] in try await loader.loadMovies(of: genre) }
    }

    func answer(_ index: Int = 0, with text: String) {
        server.answer(index, with: text)
        stage.run()
    }

    @Test func `one loader for all screens works for a single screen`() {
        let screen = load("comedy")
        answer(with: "Playtime")
        #expect(screen.value != nil && loader.movies == "Playtime")
        let closed = load("comedy")
        loader.cancelAll()
        answer(with: "Brazil")
        #expect(closed.isCancelledWithError && loader.movies == "Playtime")
    }

    @Test(arguments: [(0, "Alien"), (1, "Playtime")])
    func `flaw of one loader for all screens: both screens show the last answer`(first: Int, shown: String) {
        let titles = ["Playtime", "Alien"]
        let (comedy, horror) = (load("comedy"), load("horror"))
        answer(first, with: titles[first])
        answer(with: titles[1 - first])
        #expect(comedy.value != nil && horror.value != nil && loader.movies == shown)
    }

    @Test func `flaw of one loader for all screens: a screen that closes cancels the other's requests`() {
        let (comedy, horror) = (load("comedy"), load("horror"))
        loader.cancelAll()
        answer(with: "Playtime")
        answer(with: "Alien")
        #expect(horror.isCancelledWithError && comedy.isCancelledWithError && loader.movies.isEmpty)
    }
}
