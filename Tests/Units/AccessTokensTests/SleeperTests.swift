@testable import AccessTokens
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@Suite("One sleep serves many alarms")
struct SleeperTests {
    private let stage = Stage()
    private let clock = ManualClock()
    private let log = Log<String>()
    private let sleeper: Sleeper

    init() {
        sleeper = Sleeper(clock: .opened(clock), executor: stage)
    }

    @discardableResult
    private func set(_ name: String, at seconds: Double) -> Sleeper.Alarm {
        let alarm = sleeper.add(at: .seconds(seconds)) { [log] now in
            log.append("\(name) at \(now / .seconds(1))")
        }
        alarm.set()
        stage.run()
        return alarm
    }

    private func advance(by seconds: Double) {
        clock.advance(by: .seconds(seconds))
        stage.run()
    }

    @Test(arguments: [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]])
    func `alarms ring when their times come, whatever their order`(order: [String]) {
        let times = ["a": 1.0, "b": 2, "c": 3]
        for name in order { set(name, at: times[name] ?? 0) }
        for _ in 1...4 { advance(by: 1) }
        #expect(log.entries == ["a at 1.0", "b at 2.0", "c at 3.0"])
        #expect(sleeper.counts.alarms == 0 && sleeper.counts.sleeps == 0 && clock.sleeperCount == 0)
    }

    @Test func `alarms that come in the order of their times share one sleep`() {
        for second in 1...1000 { set("\(second)", at: Double(second)) }
        #expect(clock.sleeperCount == 1)
        advance(by: 1)
        #expect(clock.sleeperCount == 1)
        #expect(log.entries == ["1 at 1.0"])
    }

    @Test func `ten thousand alarms, each a little earlier than the last, share fewer than 25 sleeps`() {
        for number in 0..<10_000 { set("\(number)", at: 30 - Double(number) / 1_000) }
        #expect(clock.sleeperCount < 25)
        advance(by: 30)
        #expect(log.entries.count == 10_000)
    }

    @Test func `a cancelled alarm doesn't ring, and cancelling the last one ends the sleep`() {
        let first = set("a", at: 1), second = set("b", at: 2)
        first.callOff()
        #expect(!first.isPending && second.isPending)
        stage.run()
        #expect(clock.sleeperCount == 1)
        second.callOff()
        second.callOff()
        stage.run()
        #expect(clock.sleeperCount == 0 && sleeper.counts.alarms == 0)
        advance(by: 3)
        #expect(log.entries == [])
    }

    @Test func `an alarm cancelled before it is set needs no sleep`() {
        let alarm = sleeper.add(at: .seconds(1)) { [log] _ in log.append("a") }
        alarm.callOff()
        alarm.set()
        stage.run()
        #expect(clock.sleeperCount == 0 && sleeper.counts.alarms == 0)
        set("b", at: 2).callOff()
        stage.run()
        #expect(clock.sleeperCount == 0 && sleeper.counts.alarms == 0)
    }

    @Test func `cancelled alarms don't pile up behind one that waits`() {
        set("last", at: 1_000_000)
        for number in 0..<10_000 { set("\(number)", at: Double(number + 1)).callOff() }
        #expect(sleeper.counts.alarms < 150 && sleeper.counts.slots == 2)
        advance(by: 1_000_000)
        #expect(log.entries == ["last at 1000000.0"])
    }

    @Test func `the work of an alarm keeps no other alarm waiting`() {
        for name in ["a", "b", "c"] {
            sleeper.add(at: .seconds(1)) { [log, clock] _ in
                log.append(name)
                try? await clock.sleep(for: .seconds(100))
            }.set()
        }
        set("d", at: 2)
        advance(by: 1)
        #expect(log.entries.sorted() == ["a", "b", "c"])
        advance(by: 1)
        #expect(log.entries.last == "d at 2.0")
    }

    @Test func `an owner has one alarm: an earlier limit moves it, a later one doesn't`() {
        let alarms = Alarms(), serviceClock = ServiceClock.opened(clock)
        for seconds in [3, 2, 2, 5] as [Int64] {
            alarms.wake(at: .seconds(seconds), on: serviceClock, executor: stage) { [log] now in
                log.append("\(seconds) at \(now / .seconds(1))")
            }
        }
        stage.run()
        for _ in 1...5 { advance(by: 1) }
        #expect(log.entries == ["2 at 2.0"])
        #expect(clock.sleeperCount == 0)
    }

    @Test func `executions that an explorer drives share neither the program's sleep nor its clock`() {
        let alarms = Alarms(), clock = ServiceClock.continuous
        #expect(DrivenExecutions.run { ServiceClock.opened(ContinuousClock()) } !== ServiceClock.continuous)
        DrivenExecutions.run { alarms.wake(at: .seconds(1_800), on: clock, executor: nil) { _ in } }
        #expect(alarms.sleeper.map { $0 !== Sleeper.shared } ?? false)
        alarms.wakeNoMore()
    }

    @Test(arguments: [ContinuousClock(), SuspendingClock()] as [any Clock<Duration>])
    func `a sleep on a system clock goes on when its alarm is cancelled, and serves the next alarm`(clock: any Clock<Duration>) {
        let sleeper = Sleeper(clock: .opened(clock), executor: stage)
        for _ in 1...10 {
            let alarm = sleeper.add(at: .seconds(3_600)) { _ in }
            alarm.set()
            stage.run()
            alarm.callOff()
            #expect(sleeper.counts.alarms == 0 && sleeper.counts.sleeps == 1)
        }
    }

    @Test func `a sleeper without an owner ends, and so does its sleep`() {
        weak var own: Sleeper?
        do {
            let alarms = Alarms()
            alarms.wake(at: .seconds(3), on: .opened(clock), executor: stage) { _ in }
            stage.run()
            own = alarms.sleeper
            #expect(own != nil && clock.sleeperCount == 1)
        }
        stage.run()
        #expect(own == nil && clock.sleeperCount == 0)
    }

    @Test func `a long sleep with Dispatch is split, so that a change of the system's clocks doesn't make it late`() {
        let clock = ServiceClock.continuous, sleeper = Sleeper(clock: clock, executor: ServiceQueue.shared)
        let alarm = sleeper.add(at: clock.now() + .seconds(60)) { _ in }
        alarm.set()
        #expect(sleeper.nextWake.map { $0 <= clock.now() + .seconds(5) } ?? false)
        alarm.callOff()
    }

    @Test(.timeLimit(.minutes(1))) func `an alarm rings once, at its time, after a sleep in several parts`() async throws {
        let clock = ServiceClock.continuous, (rung, bell) = AsyncStream.makeStream(of: Duration.self)
        let sleeper = Sleeper(clock: clock, executor: ServiceQueue.shared, longestSleep: .milliseconds(1))
        let start = clock.now(), times = [start + .milliseconds(12), start + .milliseconds(20)]
        for time in times { sleeper.add(at: time) { bell.yield($0) }.set() }
        var rings: [Duration] = []
        for await ring in rung {
            rings.append(ring)
            if rings.count == 2 { break }
        }
        #expect(zip(rings, times).allSatisfy { $0 >= $1 })
        #expect(sleeper.counts.alarms == 0)
    }

    @Test(.timeLimit(.minutes(5)))
    func `each of a thousand alarms set and cancelled at once on real threads either rings or is cancelled`() async {
        let sleeper = Sleeper(clock: .opened(clock), executor: nil), (rung, bell) = AsyncStream.makeStream(of: Int.self)
        let calledOff = await withTaskGroup { [clock] group in
            for number in 1...1000 {
                group.addTask {
                    let alarm = sleeper.add(at: .milliseconds(number)) { _ in bell.yield(number) }
                    alarm.set()
                    clock.advance(by: .milliseconds(1))
                    return number.isMultiple(of: 2) && alarm.callOff() ? number : nil
                }
            }
            return await group.reduce(into: []) { $0 += [$1].compactMap(\.self) }
        }
        clock.advance(by: .seconds(1))
        var ended = calledOff
        if ended.count < 1000 {
            for await number in rung {
                ended.append(number)
                if ended.count == 1000 { break }
            }
        }
        #expect(ended.sorted() == Array(1...1000))
    }

    @Test func `a caller's limit sets no alarm for a load that ends at that moment`() throws {
        let eavesdropper = Eavesdropper(stage), loader = ScriptedLoader()
        weak var released: TokenService?
        do {
            let service = TokenService(environment: .driven(by: stage, clock: clock), loader: loader)
            released = service
            let patient = stage.start { try await service.retrieveToken() }
            let hasty = Task(executorPreference: eavesdropper) { try await service.retrieveToken(within: .seconds(1)) }
            stage.run()
            let call = stage.start { try await loader.nextCall() }
            // Thread A ends the wait of the caller with the short limit, and has seen that a load runs; meanwhile thread B ends
            // that load.
            eavesdropper.listen { [stage] in
                call.value?.succeed(with: .hour("a"))
                stage.run()
            }
            advance(by: 1)
            eavesdropper.listen {}
            #expect(patient.value?.value == "a")
            hasty.cancel()
            stage.run()
        }
        #expect(released == nil, "nothing that is to come keeps it")
        #expect(clock.sleeperCount == 0)
    }
}
