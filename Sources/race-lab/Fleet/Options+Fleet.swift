import Foundation

extension Options {
    /// Processes that share one grant.
    struct Fleet: Equatable {
        /// Where the grant is kept.
        enum Place: Equatable {
            case file(String)
            /// The user's password is in the environment.
            case etcd(URL, user: String? = nil)
        }

        let place: Place
        let processes: Int
        /// How many times the token must be replaced.
        var expiries = 20
        /// The longest time that the run may take.
        var seconds = 60
        /// The seed for killing a process now and then; `nil`: only a person does.
        var killSeed: Int?
        /// Whether they only swap the record, as often as they can.
        var onlySwaps = false

        /// More than that measure the machine.
        static let limit = 64

        /// What the run does, told before it begins.
        var opening: String {
            """
            \(counted(processes, "process shares", plural: "processes share")) the grant in \(place.name), at a server that replaces \
            each refresh token and ends the session if one comes twice. Kill a process with 'kill -9 PROCESS' and watch: another \
            takes its place.
            """.wrapped(indent: 0)
        }
    }

    private static let fleetOnly = ["--etcd", "--etcd-user", "--kill", "--seed", "--swaps"]

    static func fleet(in given: [String: String]) throws(UsageError) -> Fleet? {
        guard let processes = try number("--processes", in: given, upTo: Fleet.limit) else {
            guard let lonely = fleetOnly.first(where: { given[$0] != nil }) else { return nil }
            throw UsageError("\(lonely) is for several processes: give --processes as well")
        }
        let others = ["--token-url", "--client-id", "--authentication", "--scope", "--keys", "--idle", "--callers", "--show"]
        if let other = others.first(where: { given[$0] != nil }) {
            throw UsageError("--processes has a server of its own, and one key: leave out \(other)")
        }
        var fleet = Fleet(place: try place(in: given), processes: processes)
        fleet.expiries = try number("--expiries", in: given, upTo: expiryLimit) ?? fleet.expiries
        fleet.seconds = try number("--seconds", in: given, upTo: secondLimit) ?? fleet.seconds
        if given["--swaps"] != nil { return try swaps(fleet, in: given) }
        let seed = try number("--seed", in: given, from: 0, upTo: .max)
        if given["--kill"] != nil {
            fleet.killSeed = seed ?? 1
        } else if seed != nil {
            throw UsageError("--seed chooses what --kill kills: give --kill as well")
        }
        return fleet
    }

    private static func swaps(_ fleet: Fleet, in given: [String: String]) throws(UsageError) -> Fleet {
        if let other = ["--etcd", "--etcd-user", "--kill", "--seed", "--expiries"].first(where: { given[$0] != nil }) {
            throw UsageError("--swaps measures a file: leave out \(other)")
        }
        var fleet = fleet
        fleet.onlySwaps = true
        fleet.seconds = try number("--seconds", in: given, upTo: secondLimit) ?? 10
        return fleet
    }

    /// Where options, or the arguments of a process of the fleet, keep the grant.
    static func place(in given: [String: String]) throws(UsageError) -> Fleet.Place {
        if given["--etcd-user"] != nil, given["--etcd"] == nil {
            throw UsageError("--etcd-user is a user of etcd: give --etcd as well")
        }
        switch (given["--store"], given["--etcd"]) {
        case (let path?, nil): return .file(path)
        case (nil, let text?):
            guard let url = URL(string: text), url.scheme != nil else {
                throw UsageError("--etcd expects a URL such as http://127.0.0.1:2379")
            }
            return .etcd(url, user: given["--etcd-user"])
        case (_?, _?): throw UsageError("--store and --etcd are two places for one grant: leave out one of them")
        case (nil, nil): throw UsageError("--processes needs --store or --etcd: where the grant is kept")
        }
    }
}
