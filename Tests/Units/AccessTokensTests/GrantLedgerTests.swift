import AccessTokensTesting
import Foundation
import Testing
import TokenServiceConcurrency

@testable import AccessTokens

/// Random histories of a service with a store; in each of them every grant is accounted for.
@Suite("No grant is lost, no fence and no caller waits too long, whatever comes between")
struct GrantLedgerTests {
    @Test(arguments: [true, false], [true, false])
    func `random lives of a service lose no grant and keep no caller or fence waiting too long`(
        isRepeatable: Bool, hasStore: Bool
    ) throws {
        for seed in 1...60 as ClosedRange<UInt64> {
            var life = Life(isRepeatable: isRepeatable, hasStore: hasStore, seed: seed)
            for _ in 1...60 { try life.step() }
            try life.end()
            guard life.problems.isEmpty else {
                Issue.record("seed \(seed): \(life.problems.joined(separator: "; ")) after \(life.steps.joined(separator: ", "))")
                return
            }
        }
    }

    private struct Life {
        struct Waiting {
            let limit: Duration, isDone: () -> Bool, name: String
        }

        let scene: Scene, store: ScriptedStore?
        var random: SplitMix64
        var loads: [ScriptedLoader.Call] = [], waiting: [Waiting] = []
        /// Every grant issued so far, and those that a load has used up.
        var minted: [String] = [], used: Set<String> = []
        var steps: [String] = [], problems: [String] = [], hasFailed = false

        init(isRepeatable: Bool, hasStore: Bool, seed: UInt64) {
            let stored = StoredToken(.granted("stored"), received: Date(timeIntervalSince1970: 0))
            store = hasStore ? ScriptedStore(stored) : nil
            if hasStore { minted.append("stored") }
            scene = Scene(isRepeatable: isRepeatable, store: store, seed: seed)
            random = SplitMix64(seed: seed)
        }

        mutating func mint() -> AccessToken {
            minted.append("\(minted.count)")
            let lifetime = [0, 4, 40, 3_600][Int.random(in: 0..<4, using: &random)]
            return AccessToken(minted[minted.count - 1], lifetime: .seconds(lifetime), refreshToken: "g\(minted.count)")
        }

        mutating func step() throws {
            let load = loads.indices.randomElement(using: &random)
            switch Int.random(in: 0..<15, using: &random) {
            case 0...2:
                let caller = scene.call()
                wait("caller", 35) { caller.isDone }
            case 3:
                let token = mint(), fence = scene.signIn(with: token)
                wait("replace \(token.value)", 5) { fence.isDone }
            case 4:
                let fence = scene.signOut()
                wait("reset", 5) { fence.isDone }
            case 5, 6: advance(by: Int.random(in: 1...7, using: &random))
            case 7: advance(by: 31)
            case 8: hold()
            case 9: release()
            case 10: if let token = scene.service.cachedToken { invalidate(token) }
            case 11: spoil()
            case 12: if let load { fail(loads.remove(at: load)) }
            default: if let load { succeed(loads.remove(at: load)) }
            }
            while let call = try? scene.load() { loads.append(call) }
            check()
        }

        mutating func wait(_ name: String, _ limit: Int, isDone: @escaping () -> Bool) {
            steps.append(name)
            // A sign-in renews the limit of waiting callers, so theirs is checked only at the end.
            waiting.append(Waiting(limit: scene.clock.now.offset + .seconds(limit), isDone: isDone, name: name))
        }

        mutating func advance(by seconds: Int) {
            steps.append("\(seconds) s")
            scene.advance(by: .seconds(seconds))
        }

        mutating func hold() {
            steps.append("hold")
            store?.hold()
        }

        mutating func release() {
            steps.append("release")
            if let store { scene.release(store) }
        }

        /// Makes the store's operations fail from now on, or succeed again; it can always be read.
        mutating func spoil() {
            hasFailed = true
            if Bool.random(using: &random) { store?.fail(.save, .remove) } else { store?.fail() }
            steps.append("spoil")
        }

        mutating func invalidate(_ token: AccessToken) {
            steps.append("invalidate \(token.value)")
            scene.invalidate(token)
        }

        mutating func succeed(_ load: ScriptedLoader.Call) {
            let token = mint()
            steps.append("load \(load.previous?.value ?? "-") brings \(token.value)")
            if let previous = load.previous { used.insert(previous.value) }
            scene.succeed(load, with: token)
        }

        mutating func fail(_ load: ScriptedLoader.Call) {
            guard Bool.random(using: &random) else {
                steps.append("load \(load.previous?.value ?? "-") fails")
                return scene.fail(load)
            }
            let token = mint()
            steps.append("load \(load.previous?.value ?? "-") salvages \(token.value)")
            if let previous = load.previous { used.insert(previous.value) }
            scene.fail(load, with: SalvagedGrant(token, reason: ScriptedFailure.transient))
        }

        mutating func check() {
            let now = scene.clock.now.offset
            for one in waiting where one.limit <= now && one.name != "caller" && !one.isDone() {
                problems.append("\(one.name) waits beyond its limit")
            }
            waiting.removeAll { $0.isDone() }
            let discards = scene.discards.map { $0.split(separator: " ")[0] }
            if Set(discards).count != discards.count { problems.append("handed over twice: \(scene.discards)") }
            if let token = scene.service.cachedToken, discards.contains(Substring(token.value)) {
                problems.append("\(token.value) is handed out and was given up")
            }
        }

        /// Lets everything end, and signs the user out.
        mutating func end() throws {
            store?.fail()
            release()
            for _ in 1...100 where !loads.isEmpty {
                succeed(loads.removeFirst())
                while let call = try? scene.load() { loads.append(call) }
            }
            advance(by: 36)
            check()
            for one in waiting { problems.append("\(one.name) was never answered") }
            let known = scene.service.cachedToken
            if let store, let known, !hasFailed, store.contents?.value != known.value { problems.append("not stored") }
            scene.reset()
            check()
            if let store, store.contents != nil { problems.append("not removed") }
            let discards = Set(scene.discards.map { String($0.split(separator: " ")[0]) })
            for grant in minted where !discards.contains(grant) && !used.contains(grant) { problems.append("\(grant) is lost") }
        }
    }
}
