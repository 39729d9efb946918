import AccessTokens
import AccessTokensKeys
import TokenServiceConcurrency

/// Callers who go through many keys, each key with a token of its own, again whenever all tokens have expired.
struct KeyRun: Sendable {
    /// How many callers ask for a key at the same moment, so that they have a load to share.
    static let callersOfKey = 2

    let options: Options.Keys
    let callers: Int
    let services: TokenServices<Int>
    let tally: KeyTally
    /// How many keys have lost their grant until now.
    let lostGrants: @Sendable () -> Int

    init(
        _ options: Options.Keys, callers: Int, services: TokenServices<Int>, tally: KeyTally,
        lostGrants: @escaping @Sendable () -> Int
    ) {
        self.options = options
        self.callers = callers
        self.services = services
        self.tally = tally
        self.lostGrants = lostGrants
    }

    /// Visits each key once; returns what was counted.
    ///
    /// - Parameters:
    ///   - name: What the visit is called.
    ///   - report: Told how far it is, for a person who waits.
    ///   - visit: What is done with a key.
    func pass(
        _ name: String, report: @escaping @Sendable (_ progress: String) -> Void,
        _ visit: @escaping @Sendable (_ key: Int) async -> Void
    ) async -> KeySummary.Pass {
        let clock = ContinuousClock(), start = clock.now
        let keys = options.count, turns = Turns(keys)
        await withDiscardingTaskGroup { group in
            for _ in 0..<max(callers / Self.callersOfKey, 1) {
                group.addTask {
                    while let key = turns.next() {
                        if key.isMultiple(of: 1_000) { report("\(name): \(key) of \(keys)") }
                        await visit(key)
                    }
                }
            }
        }
        return KeySummary.Pass(
            name: name, keys: keys, counts: tally.take(), lostGrants: lostGrants(), elapsed: start.duration(to: clock.now))
    }

    /// Several callers ask for a key's token at once.
    @Sendable func ask(_ key: Int) async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<Self.callersOfKey { group.addTask { await call(key) } }
        }
    }

    private func call(_ key: Int) async {
        let outcome: Result<AccessToken, any Error>
        do { outcome = .success(try await services[key].retrieveToken()) } catch { outcome = .failure(error) }
        tally.note(outcome, of: key)
    }
}

/// The keys in order, each for one of those who ask.
private final class Turns: Sendable {
    private let count: Int
    private let taken = Lock(0)

    init(_ count: Int) {
        self.count = count
    }

    func next() -> Int? {
        taken.withLock { taken in
            guard taken < count else { return nil }
            defer { taken += 1 }
            return taken
        }
    }
}
