import Foundation
import RaceGallery

/// The options of the command line.
struct Options: Equatable {
    /// The mode in which the lab runs.
    enum Mode: Equatable {
        case help, museum
        case contrast(callers: Int)
        /// The name of a design, and the path for a page that walks through its schedule.
        case show(String, page: String?)
        case server(Server)
    }

    /// A real server, and how long to use it.
    struct Server: Equatable {
        let tokenURL: URL
        let clientID: String
        var scope: String?
        var authentication = Authentication.basic
        var callers = Options.usualCallers
        var expiries = 3
        var seconds = Options.usualSeconds
    }

    /// How the client authenticates.
    enum Authentication: Equatable {
        /// With a secret, in a header or in the form.
        case basic, post
        /// With an assertion that a program prints.
        case assertion(program: String, arguments: [String])
    }

    let mode: Mode
    let isJSON: Bool

    static let usualCallers = 100
    static let usualSeconds = 60
    /// More callers would only measure the machine.
    static let callerLimit = 10_000
    static let expiryLimit = 1_000
    static let secondLimit = 86_400

    /// Reads the arguments that follow the program's name; options may be written `--name value` or `--name=value`.
    init(parsing arguments: [String]) throws(UsageError) {
        if arguments.contains(where: { ["--help", "-h"].contains($0) }) {
            (mode, isJSON) = (.help, false)
        } else {
            let given = try Given(arguments)
            (mode, isJSON) = (try Usage(of: given).mode(given), given.has("--json"))
        }
    }
}

extension Options.Mode {
    static func contrast(_ given: Given) throws(UsageError) -> Self {
        .contrast(callers: try given.number("--callers", upTo: Options.callerLimit) ?? Options.usualCallers)
    }

    static func show(_ given: Given) throws(UsageError) -> Self {
        // The table marks some with an asterisk.
        let name = given["--show"]?.lowercased().replacing(/\*$/, with: "")
        guard let design = Design.all.first(where: { $0.name.lowercased() == name }) else {
            let designs = Design.all.map { "'\($0.name)'" }.joined(separator: ", ")
            throw UsageError("--show expects the name of a design, one of \(designs)")
        }
        return .show(design.name, page: given["--page"])
    }

    static func server(_ given: Given) throws(UsageError) -> Self {
        guard let url = given["--token-url"].flatMap({ URL(string: $0) }), url.scheme != nil else {
            throw UsageError("--token-url expects a URL such as https://login.example.org/token")
        }
        guard let clientID = given["--client-id"] else {
            throw UsageError("--token-url needs --client-id: the client that the server knows")
        }
        var server = Options.Server(tokenURL: url, clientID: clientID, scope: given["--scope"])
        server.authentication = try authentication(given)
        server.callers = try given.number("--callers", upTo: Options.callerLimit) ?? server.callers
        server.expiries = try given.number("--expiries", upTo: Options.expiryLimit) ?? server.expiries
        server.seconds = try given.number("--seconds", upTo: Options.secondLimit) ?? server.seconds
        return .server(server)
    }

    private static func authentication(_ given: Given) throws(UsageError) -> Options.Authentication {
        guard let command = given["--assertion-command"] else {
            switch given["--authentication"] {
            case nil, "basic", "client_secret_basic": return .basic
            case "post", "client_secret_post": return .post
            default: throw UsageError("--authentication expects 'basic' or 'post'")
            }
        }
        guard !given.has("--authentication") else {
            throw UsageError("--authentication and --assertion-command don't go together: give one of them")
        }
        let words = command.split(separator: " ").map(String.init)
        guard let program = words.first, program.hasPrefix("/") else {
            throw UsageError("--assertion-command expects a program's absolute path, then its arguments, separated by spaces")
        }
        return .assertion(program: program, arguments: Array(words.dropFirst()))
    }
}
