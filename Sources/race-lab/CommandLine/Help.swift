/// What `--help` prints.
enum Help {
    static let text = """
        race-lab shows what happens when many callers need an access token at once.

        race-lab [--callers N] [--json]
            Runs six designs of a token service, from the articles' first to
            TokenService, against a simulated authorization server and prints one
            table. Takes a few seconds, needs no network.

        race-lab --show NAME
            Draws the shortest schedule in which a design of that table fails, and
            says how often it does.

        race-lab --token-url URL --client-id ID [--authentication basic|post]
                 [--scope S] [--store PATH] [--callers N] [--expiries N] [--seconds N]
                 [--json]
            Lets N async and N callback callers of one TokenService live on the
            tokens of a real authorization server, through several expiries. The
            environment says whose tokens, never an argument: with CLIENT_SECRET the
            client's own (OAuth 2.0 client credentials); with REFRESH_TOKEN those of
            the user who signed in, and CLIENT_SECRET if the client has one.

        --callers N    how many callers, 1 to \(Options.callerLimit); 100 unless said otherwise
        --json         prints the same figures as JSON
        --token-url U  the server's token endpoint: https, or http to this machine
        --client-id I  the client as the server knows it
        --authentication M
                       where the client's secret goes: 'basic' (unless said otherwise)
                       into a header, 'post' into the form
        --scope S      the scopes to ask for, separated by spaces; none unless said
                       otherwise
        --store PATH   the file that keeps the user's refresh token from one run to
                       the next; what it has counts, and REFRESH_TOKEN only where it
                       is not there yet
        --expiries N   how many times tokens must be replaced, 1 to \(Options.expiryLimit); 3 unless
                       said otherwise
        --seconds N    ends after so many seconds even so, 1 to \(Options.secondLimit); 60 unless
                       said otherwise
        --museum       prints the museum of races instead: each bug, and the schedule
                       that shows it
        --help, -h     prints this

        Exit status: 0; 1 if the server refuses or cannot be reached, or a file or
        standard output cannot be read or written; 64 if an argument is wrong or
        something is missing in the environment.
        """
}
