import AccessTokensTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct ManualClockTests {
    let stage = Stage()
    let clock = ManualClock()

    private func sleep(_ duration: Duration) -> Stage.Player<Void> {
        stage.start { [clock] in try await clock.sleep(for: duration) }
    }

    private func watch(_ count: Int) -> Stage.Player<Void> {
        stage.start { [clock] in try await clock.waitForSleepers(count) }
    }

    @Test func `the time is the sum of all advances, and never goes backwards`() {
        #expect(clock.now.offset == .zero)
        clock.advance(by: .seconds(2))
        clock.advance(by: .seconds(3))
        clock.advance(by: .seconds(-1))
        #expect(clock.now.offset == .seconds(5))
    }

    @Test(arguments: [Duration.seconds(-1), .zero])
    func `sleeping until now or until the past returns at once`(_ duration: Duration) {
        clock.advance(by: .seconds(10))
        let sleeper = sleep(duration)
        #expect(sleeper.value != nil)
        #expect(clock.sleeperCount == 0)
    }

    @Test(arguments: [Duration.nanoseconds(1), .seconds(1), .seconds(86_400)])
    func `a sleeper wakes at its deadline and not a nanosecond before`(_ duration: Duration) {
        let sleeper = sleep(duration)
        clock.advance(by: duration - .nanoseconds(1))
        stage.run()
        #expect(!sleeper.isDone)
        #expect(clock.sleeperCount == 1)
        clock.advance(by: .nanoseconds(1))
        stage.run()
        #expect(sleeper.value != nil)
        #expect(clock.sleeperCount == 0)
    }

    @Test func `sleepers wake in the order of their deadlines, and of falling asleep if those are equal`() {
        let woken = Log<String>()
        for (name, seconds) in [("c1", 3), ("a1", 1), ("c2", 3), ("b", 2), ("a2", 1), ("late", 4)] {
            _ = stage.start { [clock] in
                try await clock.sleep(for: .seconds(seconds))
                woken.append(name)
            }
        }
        clock.advance(by: .seconds(3))
        stage.run()
        #expect(woken.entries == ["a1", "a2", "b", "c1", "c2"])
        #expect(clock.sleeperCount == 1)
    }

    @Test func `a sleeper that wakes finds the clock at the end of the jump`() {
        let sleeper = stage.start { [clock] in
            try await clock.sleep(for: .seconds(1))
            return clock.now.offset
        }
        clock.advance(by: .seconds(5))
        stage.run()
        #expect(sleeper.value == .seconds(5))
    }

    @Test func `a sleeper that is cancelled ends at once and is no longer counted`() {
        let sleeper = sleep(.seconds(1))
        sleeper.cancel()
        #expect(clock.sleeperCount == 0)
        stage.run()
        #expect(sleeper.isCancelledWithError)
    }

    @Test(arguments: [Duration.seconds(-1), .zero, .seconds(1)])
    func `a sleeper cancelled before it sleeps never sleeps`(_ duration: Duration) {
        let sleeper = stage.startCancelled { [clock] in try await clock.sleep(for: duration) }
        #expect(sleeper.isCancelledWithError)
        #expect(clock.sleeperCount == 0)
    }

    @Test(arguments: 0...3)
    func `waiting for sleepers ends when the last of them falls asleep`(_ count: Int) {
        let watcher = watch(count)
        for asleep in 0..<count {
            #expect(!watcher.isDone, "\(asleep) of \(count) asleep")
            _ = sleep(.seconds(1))
        }
        #expect(watcher.value != nil)
    }

    @Test func `waiting for sleepers that sleep already returns at once`() {
        for _ in 1...2 { _ = sleep(.seconds(1)) }
        let (two, three) = (watch(2), watch(3))
        #expect(two.value != nil)
        #expect(!three.isDone)
    }

    @Test func `waiting for sleepers counts only tasks that sleep now`() {
        let watcher = watch(2)
        for _ in 1...2 {
            let sleeper = sleep(.seconds(1))
            sleeper.cancel()
            stage.run()
        }
        #expect(!watcher.isDone)
    }

    @Test func `waiting for sleepers ends when the waiting task is cancelled`() {
        let watcher = watch(1)
        watcher.cancel()
        stage.run()
        #expect(watcher.isCancelledWithError)
        let late = stage.startCancelled { [clock] in try await clock.waitForSleepers() }
        #expect(late.isCancelledWithError)
    }

    @Test func `a thousand sleepers on real threads, half of them cancelled while time moves, all end`() async {
        await withDiscardingTaskGroup { [clock] group in
            for second in 1...1000 {
                let sleeper = Task { try await clock.sleep(until: .init(offset: .seconds(second)), tolerance: nil) }
                if second.isMultiple(of: 2) { group.addTask { sleeper.cancel() } }
                group.addTask { clock.advance(by: .seconds(1)) }
                group.addTask { _ = await sleeper.result }
            }
        }
        #expect(clock.now.offset == .seconds(1000))
        #expect(clock.sleeperCount == 0)
    }
}
