import AccessTokens
import AccessTokensOAuth
import Foundation

/// Two screens at once, one of which is closed while it loads: the second article's example, with the first article's tokens.
@main
struct MovieScreens {
    /// The output of `--help`.
    static let help = """
        movie-screens plays the second article's example: two screens load movies at
        once, with one token of one service, and one is closed while it loads.

        It brings its own servers, on this machine, and needs no network. Without an
        argument it runs the example. --help or -h prints this.
        """

    @MainActor
    static func main() async {
        do {
            switch CommandLine.arguments.dropFirst() {
            case []: try await play(say)
            case ["--help"], ["-h"]: say(help)
            default: end("it takes no arguments but --help", status: 64)
            }
        } catch {
            end("\(error)", status: 1)
        }
    }

    /// Writes a line, or ends the program if nothing can be written.
    private static func say(_ line: String) {
        do { try FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) } catch {
            end("standard output is full or closed", status: 1)
        }
    }

    private static func end(_ reason: String, status: Int32) -> Never {
        try? FileHandle.standardError.write(contentsOf: Data("movie-screens: \(reason)\n".utf8))
        exit(status)
    }

    /// Runs the example and prints each event.
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
        say("The horror screen is closed: its request ended, and its handler isn't called.")

        server.showComedies()
        await comedy.shown()
        say("The comedy screen has its own movies: \(titles(comedy)).")

        server.revoke()
        await comedy.reload()
        say("The token was revoked. It reloads with token \(server.tokensIssued): \(titles(comedy)).")

        guard horror.movies.isEmpty, horror.error == nil, comedy.error == nil else { throw UnexpectedEnding() }
    }

    @MainActor
    private static func titles(_ screen: MovieScreen) -> String {
        screen.movies.map { "\($0.title) (\($0.year))" }.joined(separator: ", ")
    }
}

/// The example didn't end as expected.
struct UnexpectedEnding: Error {}
