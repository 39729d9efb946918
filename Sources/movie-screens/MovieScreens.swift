import AccessTokens
import AccessTokensOAuth

/// Two screens at once, one closed while it loads: the second article's example, with the first's tokens.
@main
struct MovieScreens {
    @MainActor
    static func main() async throws {
        try await play { print($0) }
    }

    /// Plays the story, and tells it line by line.
    @MainActor
    static func play(_ say: (String) -> Void) async throws {
        let server = try MovieServer()
        let tokens = TokenService(
            loader: try ClientCredentialsLoader(tokenURL: server.tokenURL, clientID: "movies", clientSecret: "s3cret"))
        let factory = try MovieLoaderFactory(api: server.moviesURL, tokens: tokens)
        var questions = server.questions.makeAsyncIterator()
        var departures = server.departures.makeAsyncIterator()

        let (horror, comedy) = (MovieScreen(genre: "horror", factory: factory), MovieScreen(genre: "comedy", factory: factory))
        horror.open()
        comedy.open()
        for _ in 1...2 { _ = await questions.next() }
        say("Two screens load at once, with one token: \(server.tokensIssued) issued.")

        horror.close()
        _ = await departures.next()
        say("The horror screen is closed: its request has ended, and it hears nothing more.")

        server.showComedies()
        await comedy.shown()
        say("The comedy screen has its own movies: \(titles(comedy)).")

        server.revoke()
        await comedy.reload()
        say("The token was revoked, and it reloads with a new one: \(titles(comedy)), \(server.tokensIssued) tokens issued.")

        guard horror.movies.isEmpty, horror.error == nil, comedy.error == nil else { throw Surprise() }
    }

    @MainActor
    private static func titles(_ screen: MovieScreen) -> String {
        screen.movies.map { "\($0.title) (\($0.year))" }.joined(separator: ", ")
    }
}

/// The story did not end as it should.
struct Surprise: Error {}
