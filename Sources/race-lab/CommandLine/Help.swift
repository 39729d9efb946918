/// The output of `--help`.
enum Help {
    static let text = """
        race-lab shows what happens when many callers need an access token at once.

        race-lab [--callers N] [--json]
            Runs six designs of a token service, from the articles' first to
            TokenService, against a simulated authorization server and prints one
            table. It takes a few seconds and needs no network.

        race-lab --show NAME [--page FILE]
            Draws the shortest schedule in which a design of that table fails, and
            says how often it does. --page also writes an HTML page that walks through
            it in a browser, step by step, beside the nearest schedule that passes.

        race-lab --token-url URL --client-id ID
                 [--authentication basic|post | --assertion-command "PROGRAM ARG..."]
                 [--scope S] [--callers N] [--expiries N] [--seconds N] [--json]
            Lets N callers of one TokenService use the tokens that a real authorization
            server gives the client itself (OAuth 2.0 client credentials), until several
            have expired. Then the same callers use a naive actor and stage 3, and a
            table compares requests and waits. The naive actor sends up to N requests
            at once: choose an N that the server can handle. The client's secret comes
            from CLIENT_SECRET in the environment, never from an argument.

        race-lab --museum
            Prints the museum of races as a page of Markdown, with long lines: 38 bugs
            of token libraries and of code around them, each with the schedule that
            shows it.

        Only options that are listed together above can be combined.

        --callers N    the number of callers, 1 to \(Options.callerLimit); \(Options.usualCallers) by default
        --json         prints the same figures as JSON
        --token-url U  the server's token endpoint: https, or http to this machine
        --client-id I  the client's ID at the server
        --authentication M
                       sends the client's secret in a header ('basic', the default)
                       or in the form ('post')
        --assertion-command C
                       sends in place of a secret an assertion that a program prints
                       at each load: its absolute path and its arguments, separated
                       by spaces, without a shell
        --scope S      the scopes to ask for, separated by spaces; none by default
        --expiries N   the number of times that tokens must be replaced, 1 to \(Options.expiryLimit);
                       3 by default
        --seconds N    the longest time that the run of a design may take, 1 to
                       \(Options.secondLimit); \(Options.usualSeconds) by default
        --help, -h     prints this, whatever else is given

        Exit status: 0; 1 if the server refuses or cannot be reached, or standard output
        or a page cannot be written; 64 if an argument is wrong or something is missing
        in the environment.
        """
}
