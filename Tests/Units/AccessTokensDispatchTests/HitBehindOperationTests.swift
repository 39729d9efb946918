import AccessTokens
import AccessTokensDispatch
import AccessTokensTesting
import Dispatch
import TestBudgets
import Testing
import TokenServiceConcurrency

@Suite("Guarantees 5 and 13: no call gets a token that an operation before it ended")
struct HitBehindOperationTests {
    /// The event that ends the token "old".
    enum Ending: CaseIterable, Sendable {
        case refused, replaced, signedOut

        func end(by shim: AccessTokenService) {
            switch self {
            case .refused: shim.invalidate(.hour("old"))
            case .replaced: shim.replace(with: .hour("new"))
            case .signedOut: shim.reset()
            }
        }
    }

    /// A shim that holds the token "old", and whose other threads act while a call reads the clock.
    private struct Scene {
        let stage = Stage(), queue = ManualQueue(), log = Log<String>(), meanwhile = Meanwhile(), time = ManualClock()
        let shim: AccessTokenService

        init(age: Duration = .zero) {
            let clock = OddClock(time, onReading: meanwhile.read)
            let service = TokenService(environment: .driven(by: stage, clock: clock)) { _ in .hour("new") }
            shim = AccessTokenService(service: service, enqueue: queue.async)
            _ = stage.start { await service.replace(with: .hour("old")) }
            time.advance(by: age)
        }

        func call(_ name: String) {
            shim.retrieveToken { [log] in log.append("\(name) \(ShimScene.text($0))") }
        }

        func run(delivers: Bool = true) {
            stage.run()
            if delivers { queue.run() }
        }
    }

    /// When the operation takes effect: at which reading of the clock, and whether finished segments are delivered then, too.
    struct Moment: Sendable {
        let reading: Int
        let delivers: Bool

        static let all = [(1, false), (1, true), (2, false), (2, true)].map { Moment(reading: $0, delivers: $1) }
    }

    /// A token in its soft window isn't a hit at the first look.
    @Test(arguments: Ending.allCases, Moment.all)
    func `an operation called before a call takes effect even between that call's look and its place in the line`(
        _ ending: Ending, moment: Moment
    ) {
        for age in [0, 3_000] {
            let scene = Scene(age: .seconds(age))
            ending.end(by: scene.shim)
            scene.meanwhile.atReading(moment.reading) { scene.run(delivers: moment.delivers) }
            scene.call("1")
            scene.run()
            #expect(scene.log.entries == ["1 new"])
        }
    }

    @Test(arguments: Ending.allCases, Moment.all)
    func `hits in front of an operation get the old token, and a call behind it doesn't join them`(
        _ ending: Ending, moment: Moment
    ) {
        let scene = Scene()
        scene.call("1")
        ending.end(by: scene.shim)
        scene.meanwhile.atReading(moment.reading) { scene.run(delivers: moment.delivers) }
        scene.call("2")
        scene.run()
        #expect(scene.log.entries == ["1 old", "2 new"])
    }

    @Test(arguments: Ending.allCases, Moment.all)
    func `an operation that another thread calls after a call's look still comes before that call`(
        _ ending: Ending, moment: Moment
    ) {
        let scene = Scene()
        // Only a call behind others looks twice, first at the token's number.
        if moment.reading == 2 {
            scene.shim.retryNow()
            scene.run(delivers: false)
        }
        scene.meanwhile.atReading(moment.reading) {
            ending.end(by: scene.shim)
            scene.run(delivers: moment.delivers)
        }
        scene.call("1")
        scene.run()
        #expect(scene.log.entries == ["1 new"])
    }

    @Test(.tags(.threads))
    func `on real threads, a thread's call after its own refusal never gets the refused token`() async {
        let clock = HesitantClock()
        let service = TokenService(environment: .init(clock: clock)) { _ in .hour("loaded") }
        let shim = AccessTokenService(service: service)
        let times = Int.everyday(1_000, thorough: 5_000)
        let refused = await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: Self.refuse(times, through: shim)) }
        }
        #expect(refused == 0)
    }

    /// Counts the calls that got the token that their thread had just refused.
    private static func refuse(_ times: Int, through shim: AccessTokenService) -> Int {
        let done = DispatchSemaphore(value: 0), refused = Lock(0)
        for number in 1...times {
            let token = AccessToken.hour("\(number)")
            shim.replace(with: token) { _ in done.signal() }
            done.wait()
            shim.invalidate(token)
            shim.retrieveToken { result in
                if (try? result.get()) == token { refused.withLock { $0 += 1 } }
                done.signal()
            }
            done.wait()
        }
        return refused.withLock { $0 }
    }
}

/// The real clock, each reading of which takes some microseconds, as long as it takes to enter an actor.
///
/// So 1 in 300 calls looks at the token before the refusal ahead of it takes effect, and takes its place afterwards; with a plain
/// clock it would be 1 in 30,000.
private struct HesitantClock: Clock {
    private let clock = ContinuousClock()

    var minimumResolution: Duration { clock.minimumResolution }

    var now: ContinuousClock.Instant {
        let end = clock.now + .microseconds(Int.random(in: 0...20))
        while clock.now < end {}
        return end
    }

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
        try await clock.sleep(until: deadline, tolerance: tolerance)
    }
}
