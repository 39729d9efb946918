import AccessTokensTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct StageTests {
    let stage = Stage()
    let clock = ManualClock()

    @Test func `a task on a stage runs up to where it waits, and no further before the next run`() {
        let steps = Log<String>()
        let player = stage.start { [clock] in
            steps.append("begins")
            try await clock.sleep(for: .seconds(1))
            steps.append("ends")
        }
        #expect(steps.entries == ["begins"] && !player.isDone)
        clock.advance(by: .seconds(1))
        #expect(steps.entries == ["begins"] && !player.isDone)
        stage.run()
        #expect(steps.entries == ["begins", "ends"] && player.isDone)
    }

    @Test func `tasks on a stage run in the order in which they became runnable`() {
        let steps = Log<Int>()
        for number in 1...5 {
            stage.start { [clock] in
                try await clock.sleep(for: .seconds(6 - number))
                steps.append(number)
            }
        }
        clock.advance(by: .seconds(5))
        stage.run()
        #expect(steps.entries == [5, 4, 3, 2, 1])
    }

    @Test func `a player has the task's value or its error, once it is done`() {
        struct Failure: Error {}
        let value = stage.start { 1 }
        let error = stage.start { () throws -> Int in throw Failure() }
        let waiting = stage.start { [clock] in try await clock.sleep(for: .seconds(1)) }
        #expect(value.isDone && value.value == 1 && value.error == nil)
        #expect(error.isDone && error.value == nil && error.error is Failure)
        #expect(!waiting.isDone && waiting.value == nil && waiting.error == nil)
    }

    @Test func `a cancelled player ends at the next run`() {
        let player = stage.start { [clock] in try await clock.sleep(for: .seconds(1)) }
        player.cancel()
        #expect(!player.isDone)
        stage.run()
        #expect(player.isDone && player.error is CancellationError)
    }

    @Test func `actors and child tasks of a task on a stage run there too`() {
        actor Counter {
            var count = 0
            func increment() { count += 1 }
        }
        let counter = Counter()
        let player = stage.start {
            await withTaskGroup { group in
                for _ in 1...10 { group.addTask { await counter.increment() } }
            }
            return await counter.count
        }
        #expect(player.value == 10)
    }

    @Test func `a task has the priority that it was started with`() {
        let player = stage.start(priority: .high) { Task.currentPriority }
        #expect(player.value == .high)
    }
}
