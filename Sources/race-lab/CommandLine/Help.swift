/// What `--help` prints.
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

        race-lab --token-url URL --client-id ID [--authentication basic|post]
                 [--scope S] [--store PATH] [--callers N] [--expiries N] [--seconds N]
                 [--json]
            Lets N async and N callback callers of one TokenService use the tokens of
            a real authorization server, until several have expired. Secrets come
            from the environment, never from an argument. CLIENT_SECRET gets tokens
            for the client itself (OAuth 2.0 client credentials). REFRESH_TOKEN gets
            tokens for a signed-in user; set CLIENT_SECRET too if the client has one.

        race-lab --keys N [--idle M] [--callers N] [--json]
                 [--token-url URL --client-id ID …]
            Lets the callers go through N keys, such as a server program's accounts,
            each with a token of its own, and keeps M idle services at most. Without
            --token-url a simulated server gives each key a rotating refresh token,
            all tokens expire twice, and the stores are in memory. With --token-url
            and CLIENT_SECRET alone the client gets a token for each key. For signed-in
            users put one refresh token for each key into REFRESH_TOKEN, separated by
            spaces; --store is then a directory.

        race-lab --processes N (--store PATH | --etcd URL [--etcd-user NAME])
                 [--kill [--seed S]] [--expiries N] [--seconds N] [--json]
            Starts N processes that share one grant, in a file or in etcd, and a server
            that rotates its refresh token and ends the session if one comes twice.
            Tells which process loads and which adopt, and for each lost session why.
            Kill one with 'kill -9' meanwhile, or stop it with 'kill -STOP'; --kill
            kills one at random now and then. Another takes its place.

        race-lab --processes N --store PATH --swaps [--seconds N] [--json]
            Counts how often N processes replace the record of one file in a second
            when they do nothing else, for 10 s unless told otherwise.

        race-lab --sharing [--json]
            Counts in virtual time how many sessions each of five ways to share a
            rotating refresh token loses, without faults and with three kinds.

        race-lab --museum
            Prints the museum of races: 33 bugs of token libraries and of code around
            them, each with the schedule that shows it.

        --callers N    the number of callers, 1 to \(Options.callerLimit); 100 by default
        --keys N       the number of keys, 1 to \(Options.Keys.limit); at most \(Options.Keys.realLimit) with
                       --token-url
        --idle M       the number of idle services to keep, 0 to \(Options.Keys.limit); a tenth of
                       the keys by default, and 1000 at most
        --json         prints the same figures as JSON
        --token-url U  the server's token endpoint: https, or http to this machine
        --client-id I  the client's ID at the server
        --authentication M
                       sends the client's secret in a header ('basic', the default)
                       or in the form ('post')
        --scope S      the scopes to ask for, separated by spaces; none by default
        --store PATH   the file that keeps the user's refresh token between runs; if
                       it has one, REFRESH_TOKEN isn't used. With --processes, the
                       file of the shared grant
        --processes N  the number of processes that share a grant, 1 to \(Options.Fleet.limit)
        --etcd URL     keeps the shared grant in etcd, under the key /race-lab/grant
        --etcd-user NAME
                       the user for --etcd, if it has users; the password comes from
                       ETCD_PASSWORD in the environment
        --kill         kills a process at random, every 0.5 to 3 s
        --seed S       the seed for --kill, a number from 0; 1 by default
        --expiries N   the number of times that tokens must be replaced, 1 to \(Options.expiryLimit);
                       3 by default, 20 with --processes
        --seconds N    the longest time that a run may take, 1 to \(Options.secondLimit); 60 by default,
                       10 with --swaps
        --help, -h     prints this

        Exit status: 0; 1 if the server refuses or cannot be reached, a key loses its
        grant or gets another key's token, processes lose a session without a reason
        or don't replace the token often enough, or a file or standard output cannot
        be read or written; 64 if an argument is wrong or something is missing in the
        environment.
        """
}
