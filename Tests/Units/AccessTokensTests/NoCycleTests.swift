import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantee 17: loads that don't wait for themselves get no error")
struct NoCycleTests {
    private static func asking(_ numbers: Int..., as name: String) -> Neighbours.Loader {
        { neighbours in
            try await withThrowingTaskGroup { group in
                for number in numbers { group.addTask { _ = try await neighbours.ask(number) } }
                try await group.waitForAll()
            }
            return .hour(name)
        }
    }

    @Test func `a chain of loads ends without an error`() {
        let chain = Neighbours((0..<20).map { $0 < 19 ? Self.asking($0 + 1, as: "\($0)") : Self.asking(as: "19") })
        #expect(chain.call(0).value?.value == "0" && !chain.areWaiting)
        #expect((0..<20).allSatisfy { chain[$0].cachedToken?.value == "\($0)" })
    }

    @Test func `a diamond of loads, and a load that calls one service three times at once, end without an error`() {
        let diamond = Neighbours([
            Self.asking(1, 2, 1, 1, as: "0"), Self.asking(3, as: "1"), Self.asking(3, as: "2"), Self.asking(as: "3"),
        ])
        #expect(diamond.call(0).value?.value == "0" && !diamond.areWaiting)
    }

    @Test(arguments: ["cancelled", "out of time"])
    func `a load that no longer waits for another one closes no cycle`(because: String) {
        let neighbours = Neighbours([
            { neighbours in
                let asking = Task(executorPreference: neighbours.stage) { try await neighbours.ask(1, within: .seconds(3)) }
                await neighbours.pass("enough")
                asking.cancel()
                _ = await asking.result
                await neighbours.pass("0")
                return .hour("0")
            },
            { neighbours in
                await neighbours.pass("1")
                return .hour("1 by \(try await neighbours.ask(0).value)")
            },
        ])
        let caller = neighbours.call(0)
        #expect(neighbours.areWaiting)
        if because == "cancelled" {
            neighbours.open("enough")
        } else {
            neighbours.clock.advance(by: .seconds(3))
            neighbours.stage.run()
        }
        #expect(!neighbours.areWaiting)
        let other = neighbours.call(1)
        neighbours.open("1")
        #expect(!other.isDone && neighbours.areWaiting, "it waits for the load that runs")
        neighbours.open("enough", "0")
        #expect(caller.value?.value == "0" && other.value?.value == "1 by 0" && !neighbours.areWaiting)
    }

    @Test func `a task that an ended load has left behind gets its token and closes no cycle`() {
        let answers = Log<String>()
        let neighbours = Neighbours([
            { neighbours in
                Task(executorPreference: neighbours.stage) {
                    do { answers.append(try await neighbours.ask(1).value) } catch { answers.append("a cycle") }
                }
                return .hour("0")
            },
            { neighbours in
                await neighbours.pass("1")
                return .hour("1 by \(try await neighbours.ask(0).value)")
            },
        ])
        #expect(neighbours.call(0).value?.value == "0")
        _ = neighbours.stage.start { [service = neighbours[0]] in await service.reset() }
        // A task of the first load still waits for the other service, whose loader waits for a new load of this service. If a
        // task of that load waited for the other service as well, the load would wait for itself.
        neighbours.open("1")
        #expect(answers.entries == ["a cycle", "1 by 0"])
        #expect(!neighbours.areWaiting)
    }

    @Test func `no load waits for one that has timed out`() {
        let neighbours = Neighbours([
            { neighbours in
                await neighbours.pass("0")
                return try await neighbours.ask(1)
            },
            { neighbours in
                await neighbours.pass("1")
                return try await neighbours.ask(0)
            },
        ])
        let caller = neighbours.call(0)
        neighbours.clock.advance(by: .seconds(10))
        neighbours.open("0")
        let other = neighbours.call(1)
        neighbours.clock.advance(by: .seconds(20))
        neighbours.stage.run()
        #expect(caller.code == .loadTimedOut && !other.isDone)
        neighbours.open("1")
        #expect(other.firstCause == .loadTimedOut, "that of the load that must not be repeated")
        #expect(!neighbours.areWaiting)
    }

    @Test func `a refresh closes no cycle if the load it waits for gets the token that is still good`() {
        let neighbours = Neighbours([
            { neighbours in
                await neighbours.pass("0")
                return .hour("0 by \(try await neighbours.ask(1).value)")
            },
            { neighbours in
                await neighbours.pass("1")
                return .hour("1 by \(try await neighbours.ask(0).value)")
            },
        ])
        _ = neighbours.stage.start { [service = neighbours[0]] in await service.replace(with: .hour("given")) }
        neighbours.clock.advance(by: .seconds(3_000))
        #expect(neighbours.call(0).value?.value == "given")
        neighbours.open("0")
        neighbours.open("1")
        #expect(neighbours.call(0).value?.value == "0 by 1 by given" && !neighbours.areWaiting)
    }
}
