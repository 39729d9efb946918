import Foundation
import Testing

@testable import race_lab

@Suite struct `Command line` {
    @Test func `the command line selects the simulation by default`() throws {
        let options = try Options(parsing: [])
        #expect(options.mode == .contrast(callers: 100))
        #expect(!options.isJSON)
    }

    @Test(arguments: [["--callers", "7", "--json"], ["--json", "--callers=7"]])
    func `options take values after a space or an equals sign, in any order`(_ arguments: [String]) throws {
        let options = try Options(parsing: arguments)
        #expect(options.mode == .contrast(callers: 7))
        #expect(options.isJSON)
    }

    @Test func `the command line can select a real server`() throws {
        let url = try #require(URL(string: "https://a.example/token?x=y"))
        let arguments = ["--token-url", "\(url)", "--client-id", "me"]
        #expect(try Options(parsing: arguments).mode == .server(.init(tokenURL: url, clientID: "me")))
        let server = Options.Server(tokenURL: url, clientID: "me", scope: "a b", callers: 7, expiries: 5, seconds: 9)
        let others = ["--scope", "a b", "--callers", "7", "--expiries", "5", "--seconds", "9"]
        #expect(try Options(parsing: arguments + others).mode == .server(server))
    }

    @Test func `--page takes the path of a file, for --show`() throws {
        let options = try Options(parsing: ["--show", "stage 2", "--page", "a/page.html"])
        #expect(options.mode == .show("stage 2", page: "a/page.html"))
        #expect(try Options(parsing: ["--show", "stage 2"]).mode == .show("stage 2", page: nil))
    }

    @Test(
        arguments: [
            ("stage 2", "stage 2"), ("Stage 2*", "stage 2"), ("NAIVE actor", "naive actor"), ("tokenservice", "TokenService"),
        ])
    func `--show takes a design's name in any case, with the table's asterisk or without`(_ name: String, design: String) throws {
        #expect(try Options(parsing: ["--show", name]).mode == .show(design, page: nil))
    }

    @Test(arguments: ["stage", "stage 4", "Service", "*"])
    func `--show lists the designs when there is none of that name`(_ name: String) {
        let message =
            "--show expects the name of a design, one of 'stage 1', 'stage 2', 'stage 3', 'naive actor', "
            + "'AccessTokenService', 'TokenService'"
        #expect(throws: UsageError(message)) { try Options(parsing: ["--show", name]) }
    }

    @Test(
        arguments: [
            (["--authentication", "basic"], .basic), (["--authentication", "client_secret_basic"], .basic),
            (["--authentication", "post"], .post), (["--authentication", "client_secret_post"], .post),
            (["--assertion-command", "/bin/identity"], .assertion(program: "/bin/identity", arguments: [])),
            (["--assertion-command=/bin/id  print -a=b"], .assertion(program: "/bin/id", arguments: ["print", "-a=b"])),
        ] as [([String], Options.Authentication)])
    func `--authentication puts the secret where the server wants it, and --assertion-command replaces the secret`(
        _ arguments: [String], authentication: Options.Authentication
    ) throws {
        let url = try #require(URL(string: "https://a.example/"))
        let options = try Options(parsing: ["--token-url", "\(url)", "--client-id", "me"] + arguments)
        #expect(options.mode == .server(.init(tokenURL: url, clientID: "me", authentication: authentication)))
    }

    @Test(arguments: ["0", "-1", "10001", "99999999999999999999", "ten", "1.5", "0x10", " 7", "1e3"])
    func `--callers refuses numbers out of range and names the range`(_ number: String) {
        #expect(throws: UsageError("--callers expects a whole number from 1 to 10000")) {
            try Options(parsing: ["--callers", number])
        }
    }

    @Test(arguments: [1, 10_000]) func `--callers takes the first and the last number of its range`(_ number: Int) throws {
        #expect(try Options(parsing: ["--callers", "\(number)"]).mode == .contrast(callers: number))
    }

    @Test(
        arguments: [
            (["--callers"], "--callers needs a value"),
            (["--callers="], "--callers needs a value"),
            (["--callers", "3", "--callers=5"], "--callers is given twice"),
            (["--show", "stage 2", "--show", "stage 2"], "--show is given twice"),
            (["--museum", "--museum"], "--museum is given twice"),
            (["--callers", "--json"], "--callers needs a value"),
            (["--json=yes"], "--json takes no value"),
            (["--frob=value"], "unknown option '--frob'"),
            (["-x"], "unknown option '-x'"),
            (["now"], "unexpected argument (not repeated here: it may be a secret)"),
            ([""], "unexpected argument (not repeated here: it may be a secret)"),
            (["--a\u{1B}[1m\nb"], "unexpected argument (not repeated here: it may be a secret)"),
            (["--show"], "--show needs a value"),
            (["--show", "stage 2", "--page"], "--page needs a value"),
            (["--page="], "--page needs a value"),
            (
                ["--token-url", "https://a.example/", "--client-id", "me", "--authentication", "guess"],
                "--authentication expects 'basic' or 'post'"
            ),
            (
                ["--token-url", "https://a.example/", "--client-id", "me", "--assertion-command", "identity print"],
                "--assertion-command expects a program's absolute path, then its arguments, separated by spaces"
            ),
            (["--token-url", "https://a.example/"], "--token-url needs --client-id: the client that the server knows"),
            (
                ["--token-url", "token", "--client-id", "me"],
                "--token-url expects a URL such as https://login.example.org/token"
            ),
        ])
    func `an error names the argument that is wrong and what is expected`(_ arguments: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try Options(parsing: arguments) }
    }

    // A secret passed there by mistake must not appear in a log.
    @Test(
        arguments: [
            ["--client-secret", "hunter2"], ["--client-secret=hunter2"], ["--refresh-token=hunter2"], ["--frob=hunter2"],
            ["hunter2"], ["-hunter2"], ["--hunter2"], ["-phunter2"], ["--client-secret:hunter2"], ["--json", "hunter2"],
            ["--callers", "hunter2"], ["--show", "hunter2"], ["--token-url", "hunter2", "--client-id", "me"],
            ["--token-url", "https://a.example/", "--client-id", "me", "--authentication", "hunter2"],
            ["--token-url", "https://a.example/", "--client-id", "me", "--assertion-command", "hunter2"],
        ])
    func `no error repeats a secret that was given as an argument`(_ arguments: [String]) throws {
        let error = try #require(throws: UsageError.self) { try Options(parsing: arguments) }
        #expect(!error.description.contains("hunter2"))
    }

    @Test func `the help fits a terminal of 80 columns`() throws {
        let ignored = [["--museum", "--callers", "3"], ["--frob"], ["--callers", "--json", "--json"]]
        for arguments in [["--help"], ["-h"]] + ignored.map({ $0 + ["--help"] }) + ignored.map({ ["-h"] + $0 }) {
            #expect(try Options(parsing: arguments).mode == .help)
        }
        #expect(Help.text.tooLong == [])
    }
}
