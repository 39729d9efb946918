import AccessTokens
import AccessTokensFiles
import Foundation
import Testing
import TokenServiceConcurrency

@Suite("A process killed at any moment of a rotation keeps a grant that the server accepts")
struct KillTests {
    /// The client's state when it was killed: with the server's last answer saved or not, and with how many partial saves.
    private struct Tally {
        var kills = 0
        var saved = 0
        var unsaved = 0
        var leftovers = 0
    }

    /// On a disk the client nearly always waits for it; in memory the kills happen at other points.
    private static var disks: [(directory: String, rotations: Int, kills: Int)] {
        let disk = FileManager.default.temporaryDirectory.path
        let memory = "/dev/shm"
        guard FileManager.default.isWritableFile(atPath: memory) else { return [(disk, 1_000, 25)] }
        return [(disk, 200, 10), (memory, 800, 15)]
    }

    @Test(arguments: disks)
    func `a process killed at any moment leaves the grant issued last, or the one before it`(
        in disk: String, rotations: Int, kills: Int
    ) async throws {
        let environment = ProcessInfo.processInfo.environment
        let kills = environment["TOKEN_FILE_KILLS"].flatMap { Int($0) } ?? kills
        let seed = environment["TOKEN_FILE_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0 ... .max)
        var random = SplitMix64(seed: seed)
        let rotation = Rotation(in: try Place(in: disk))
        var tally = Tally()
        while try tally.kills < kills || rotation.exchanges().count < rotations {
            let lines = Int.random(in: 1...120, using: &random)
            let words = try await rotation.kill(afterLines: lines, turns: Int.random(in: 0...60_000, using: &random))
            try #require(!words.contains("refused"), "the server refused a grant; seed \(seed), kill \(tally.kills)")
            try await check(rotation, &tally, seed: seed)
        }
        // The next save removes the last one's leftovers.
        let place = rotation.place
        try await place.store.save(Place.stored())
        #expect(try place.names == ["ledger", "token.json"])
        if environment["TOKEN_FILE_KILLS"] != nil {
            try FileHandle.standardError.write(
                contentsOf: Data("\(disk), seed \(seed): \(try rotation.exchanges().count) rotations, \(tally)\n".utf8))
        }
    }

    private func check(_ rotation: Rotation, _ tally: inout Tally, seed: UInt64) async throws {
        let exchanges = try rotation.exchanges()
        let loaded = try await rotation.place.store.load()
        let grant = loaded?.token.refreshToken.flatMap { Int($0) } ?? 0
        let last = exchanges.last ?? (0, 0)
        tally.kills += 1
        try #require(
            grant == last.issued || grant == last.presented,
            "seed \(seed), kill \(tally.kills): \(grant) is stored, \(last.issued) was issued for \(last.presented)")
        if grant == last.issued { tally.saved += 1 } else { tally.unsaved += 1 }
        let leftovers = try rotation.place.names.filter { $0.hasSuffix(".tmp") }
        #expect(leftovers.count <= 1, "one process leaves one file, and the next removes it")
        tally.leftovers += leftovers.count
    }
}
