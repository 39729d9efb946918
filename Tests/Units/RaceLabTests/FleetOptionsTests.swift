import Foundation
import Testing

@testable import race_lab

@Suite struct `The command line for several processes` {
    @Test func `--processes shares a grant in a file, or in etcd, and ends after 20 rotations unless told otherwise`() throws {
        let fleet = try #require(try Options(parsing: ["--store", "grant", "--processes", "3"]).fleet)
        #expect(fleet == Options.Fleet(place: .file("grant"), processes: 3, expiries: 20, seconds: 60, killSeed: nil))
        let url = try #require(URL(string: "http://127.0.0.1:2379"))
        let other = try Options(parsing: ["--etcd", "\(url)", "--processes=2", "--expiries", "5", "--seconds", "9", "--json"])
        #expect(other.fleet == Options.Fleet(place: .etcd(url), processes: 2, expiries: 5, seconds: 9, killSeed: nil))
        #expect(other.isJSON && other.server == nil)
    }

    @Test func `--etcd-user names a user of etcd, whose password is read from the environment by each process`() throws {
        let url = "http://127.0.0.1:2379"
        let fleet = try #require(try Options(parsing: ["--etcd", url, "--etcd-user=lab", "--processes", "2"]).fleet)
        #expect(fleet.place == .etcd(try #require(URL(string: url)), user: "lab"))
        #expect(fleet.place.arguments == ["--etcd", url, "--etcd-user", "lab"])
        #expect(throws: Never.self) { try fleet.place.store(in: ["ETCD_PASSWORD": "hunter2"]) }
        #expect(throws: Never.self) { try FleetWorker([FleetWorker.flag, "http://127.0.0.1:1"] + ["--etcd", url]) }
        for environment in [[:], ["ETCD_PASSWORD": ""]] {
            let error = #expect(throws: UsageError.self) { try fleet.place.store(in: environment) }
            #expect(
                error?.description.hasPrefix("--etcd-user needs ETCD_PASSWORD: put the password of etcd's user into") ?? false)
        }
    }

    @Test(arguments: [
        [], ["http://127.0.0.1:1"], ["http://127.0.0.1:1", "--store"], ["http://127.0.0.1:1", "--etcd-user", "lab"],
    ])
    func `a process of the fleet with other arguments than its parent's ends with an error`(_ arguments: [String]) {
        #expect(throws: UsageError.self) { try FleetWorker([FleetWorker.flag] + arguments) }
    }

    @Test func `--kill has a seed, 1 unless told otherwise`() throws {
        let arguments = ["--store", "grant", "--processes", "3", "--kill"]
        #expect(try Options(parsing: arguments).fleet?.killSeed == 1)
        #expect(try Options(parsing: arguments + ["--seed", "0"]).fleet?.killSeed == 0)
    }

    @Test(
        arguments: [
            (["--processes", "3"], "--processes needs --store or --etcd: where the grant is kept"),
            (
                ["--processes", "3", "--store", "a", "--etcd", "http://127.0.0.1:1"],
                "--store and --etcd are two places for one grant: leave out one of them"
            ),
            (["--processes", "0", "--store", "a"], "--processes expects a whole number from 1 to 64"),
            (["--processes", "65", "--store", "a"], "--processes expects a whole number from 1 to 64"),
            (["--processes", "3", "--etcd", "nowhere"], "--etcd expects a URL such as http://127.0.0.1:2379"),
            (["--etcd", "http://127.0.0.1:1"], "--etcd is for several processes: give --processes as well"),
            (["--etcd-user", "lab"], "--etcd-user is for several processes: give --processes as well"),
            (
                ["--processes", "3", "--store", "a", "--etcd-user", "lab"],
                "--etcd-user is a user of etcd: give --etcd as well"
            ),
            (["--kill"], "--kill is for several processes: give --processes as well"),
            (["--seed", "1"], "--seed is for several processes: give --processes as well"),
            (["--processes", "3", "--store", "a", "--seed", "1"], "--seed chooses what --kill kills: give --kill as well"),
            (["--swaps"], "--swaps is for several processes: give --processes as well"),
            (
                ["--processes", "3", "--store", "a", "--swaps", "--kill"], "--swaps measures a file: leave out --kill"
            ),
            (["--processes", "3", "--store", "a", "--kill=9"], "--kill takes no value"),
            (
                ["--processes", "3", "--store", "a", "--token-url", "https://a.example/"],
                "--processes has a server of its own, and one key: leave out --token-url"
            ),
            (
                ["--processes", "3", "--store", "a", "--callers", "5"],
                "--processes has a server of its own, and one key: leave out --callers"
            ),
        ])
    func `an error about several processes names the argument and what is expected`(_ arguments: [String], _ message: String) {
        #expect(throws: UsageError(message)) { try Options(parsing: arguments) }
    }
}
