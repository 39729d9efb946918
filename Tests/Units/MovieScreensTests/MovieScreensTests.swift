import AccessTokens
import AccessTokensOAuth
import TestBudgets
import Testing

@testable import movie_screens

@MainActor
@Suite(.timeLimit(.minutes(10)), .inRealTime)
struct MovieScreensTests {
    let server: MovieServer
    let factory: MovieLoaderFactory

    init() throws {
        server = try MovieServer()
        let loader = try ClientCredentialsLoader(tokenURL: server.tokenURL, clientID: "movies", clientSecret: "s3cret")
        factory = try MovieLoaderFactory(api: server.moviesURL, tokens: TokenService(loader: loader))
    }

    @Test func `the program prints the expected story`() async throws {
        var lines: [String] = []
        try await MovieScreens.play { lines.append($0) }
        #expect(
            lines == [
                "Two screens load at once, with one token: 1 issued.",
                "The horror screen is closed: its request ended, and its handler isn't called.",
                "The comedy screen has its own movies: Playtime (1967), Brazil (1985).",
                "The token was revoked. It reloads with token 2: Playtime (1967), Brazil (1985).",
            ])
        #expect(lines.allSatisfy { $0.count <= 80 })
    }

    @Test func `a closed screen's requests end, and it shows nothing`() async throws {
        var (questions, departures) = (server.questions.makeAsyncIterator(), server.departures.makeAsyncIterator())
        let screen = MovieScreen(genre: "horror", factory: factory)
        for _ in 1...3 { screen.open() }
        for _ in 1...3 { _ = await questions.next() }
        screen.close()
        for _ in 1...3 { _ = await departures.next() }
        #expect(screen.movies.isEmpty && screen.error == nil)
    }

    @Test func `a closed screen shows none of another screen's movies`() async throws {
        var questions = server.questions.makeAsyncIterator()
        let screens = ["horror", "comedy", "comedy"].map { MovieScreen(genre: $0, factory: factory) }
        for screen in screens { screen.open() }
        for _ in screens { _ = await questions.next() }
        screens[0].close()
        screens[1].close()
        server.showComedies()
        await screens[2].shown()
        #expect(screens.map { $0.movies.isEmpty } == [true, true, false])
        #expect(server.tokensIssued == 1)
    }

    @Test func `a released screen's request ends`() async throws {
        var (questions, departures) = (server.questions.makeAsyncIterator(), server.departures.makeAsyncIterator())
        var screen: MovieScreen? = MovieScreen(genre: "horror", factory: factory)
        screen?.open()
        _ = await questions.next()
        screen = nil
        #expect(await departures.next() != nil)
    }
}
