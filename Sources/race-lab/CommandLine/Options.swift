import Foundation
import RaceGallery

/// What the command line asks for.
struct Options: Equatable {
    /// A real server, and how long to ask it.
    struct Server: Equatable {
        let tokenURL: URL
        let clientID: String
        var scope: String?
        /// Whether the client's secret goes into the form, not into a header.
        var postsSecret = false
        /// The path of the file that keeps the refresh token.
        var store: String?
        var expiries = 3
        var seconds = 60
    }

    var wantsHelp = false
    var wantsMuseum = false
    var wantsSharing = false
    var isJSON = false
    var callers = 100
    /// The name of the design to show; `nil`: all are compared.
    var show: String?
    /// The path for a page that walks through that one's schedule.
    var page: String?
    var server: Server?
    /// The load over many keys; `nil`: over one.
    var keys: Keys?
    /// Processes that share a grant; `nil`: there is one.
    var fleet: Fleet?

    /// More callers show nothing more, and measure the machine instead.
    static let callerLimit = 10_000
    static let expiryLimit = 1_000
    static let secondLimit = 86_400

    init() {}

    /// Reads the arguments that follow the program's name; options may be written `--name value` or `--name=value`.
    init(parsing arguments: [String]) throws(UsageError) {
        var given: [String: String] = [:]
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts.first ?? ""
            if Self.flags.contains(name) {
                guard parts.count == 1 else { throw UsageError("\(name) takes no value") }
                given[name] = ""
            } else if Self.names.contains(name) {
                guard let value = parts.count == 2 ? parts[1] : rest.popFirst(), !value.isEmpty, !value.hasPrefix("--") else {
                    throw UsageError("\(name) needs a value")
                }
                given[name] = value
            } else {
                throw Self.unknown(name)
            }
        }
        isJSON = given["--json"] != nil
        wantsMuseum = given["--museum"] != nil
        wantsSharing = given["--sharing"] != nil
        wantsHelp = given["--help"] != nil || given["-h"] != nil
        callers = try Self.number("--callers", in: given, upTo: Self.callerLimit) ?? callers
        show = try Self.design(in: given, isJSON: isJSON)
        page = given["--page"]
        if page != nil, show == nil { throw UsageError("--page is for one schedule: give --show as well") }
        fleet = try Self.fleet(in: given)
        if fleet != nil { return }
        server = try Self.server(in: given)
        keys = try Self.keys(in: given)
    }

    private static let flags = ["--help", "-h", "--json", "--museum", "--kill", "--sharing", "--swaps"]
    private static let names =
        ["--callers", "--show", "--page", "--keys", "--idle", "--token-url", "--processes", "--etcd", "--etcd-user", "--seed"]
        + namesOfServer
    private static let namesOfServer = ["--client-id", "--authentication", "--scope", "--store", "--expiries", "--seconds"]

    /// Says what is not known; repeats it only if it looks like an option's name, as anything else may be a secret.
    private static func unknown(_ name: String) -> UsageError {
        let isName = name.wholeMatch(of: /-[A-Za-z]|--[a-z][a-z-]{1,23}/) != nil
        let what = isName ? "unknown option '\(name)'" : "unexpected argument (not repeated here: it may be a secret)"
        for secret in Credentials.Secret.allCases where name.contains(secret.optionPart) {
            return UsageError("\(what): \(secret.advice)")
        }
        return UsageError(what)
    }

    static func number(
        _ name: String, in given: [String: String], from least: Int = 1, upTo limit: Int
    ) throws(UsageError) -> Int? {
        guard let text = given[name] else { return nil }
        guard let number = Int(text), (least...limit).contains(number) else {
            throw UsageError("\(name) expects a whole number from \(least) to \(limit)")
        }
        return number
    }

    private static func design(in given: [String: String], isJSON: Bool) throws(UsageError) -> String? {
        guard let text = given["--show"] else { return nil }
        let others = (names + ["--kill", "--swaps"]).filter { !["--show", "--page"].contains($0) }
        if let other = isJSON ? "--json" : others.first(where: { given[$0] != nil }) {
            throw UsageError("--show draws one schedule: leave out \(other)")
        }
        // The table marks some with an asterisk.
        let name = text.lowercased().replacing(/\*$/, with: "")
        guard let design = Design.all.first(where: { $0.name.lowercased() == name }) else {
            let designs = Design.all.map { "'\($0.name)'" }.joined(separator: ", ")
            throw UsageError("--show expects the name of a design, one of \(designs)")
        }
        return design.name
    }

    private static func server(in given: [String: String]) throws(UsageError) -> Server? {
        guard let text = given["--token-url"] else {
            guard let lonely = namesOfServer.first(where: { given[$0] != nil }) else { return nil }
            if lonely == "--store" {
                throw UsageError("--store is for a real server or several processes: give --token-url or --processes as well")
            }
            throw UsageError("\(lonely) is for a real server: give --token-url as well")
        }
        guard let url = URL(string: text), url.scheme != nil else {
            throw UsageError("--token-url expects a URL such as https://login.example.org/token")
        }
        guard let clientID = given["--client-id"] else {
            throw UsageError("--token-url needs --client-id: the client that the server knows")
        }
        var server = Server(tokenURL: url, clientID: clientID, scope: given["--scope"], store: given["--store"])
        server.postsSecret = try postsSecret(in: given)
        server.expiries = try number("--expiries", in: given, upTo: expiryLimit) ?? server.expiries
        server.seconds = try number("--seconds", in: given, upTo: secondLimit) ?? server.seconds
        return server
    }

    private static func postsSecret(in given: [String: String]) throws(UsageError) -> Bool {
        switch given["--authentication"] {
        case nil, "basic", "client_secret_basic": return false
        case "post", "client_secret_post": return true
        default: throw UsageError("--authentication expects 'basic' or 'post'")
        }
    }
}
