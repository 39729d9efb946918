import AccessTokens
import AccessTokensTesting
import Testing

@Suite("Guarantee 17: loads that would wait for each other in a cycle end at once, however they started")
struct LoadCycleTests {
    /// A loader that asks another service once its gate is open.
    private static func asking(_ numbers: Int..., as name: String) -> Neighbours.Loader {
        { neighbours in
            await neighbours.pass(name)
            try await withThrowingTaskGroup { group in
                for number in numbers { group.addTask { _ = try await neighbours.ask(number) } }
                try await group.waitForAll()
            }
            return .hour(name)
        }
    }

    private func expectCycle(_ callers: [Scene.Caller], in neighbours: Neighbours) {
        #expect(callers.allSatisfy { $0.firstCause == .loaderWaitsForItself })
        #expect(neighbours.clock.now.offset == .zero, "at once")
        #expect(!neighbours.areWaiting)
    }

    @Test(arguments: [["0", "1"], ["1", "0"]], [false, true])
    func `two services whose loads ask each other get an error, when two callers started them`(order: [String], haveStores: Bool)
    {
        let stores: [Int: any TokenStore] = haveStores ? [0: ScriptedStore(), 1: ScriptedStore()] : [:]
        let neighbours = Neighbours([Self.asking(1, as: "0"), Self.asking(0, as: "1")], stores: stores)
        let callers = [neighbours.call(0), neighbours.call(1)]
        neighbours.open(order[0])
        #expect(!callers.contains { $0.isDone } && neighbours.areWaiting)
        neighbours.open(order[1])
        expectCycle(callers, in: neighbours)
    }

    @Test(arguments: [["0", "1", "2"], ["0", "2", "1"], ["1", "0", "2"], ["1", "2", "0"], ["2", "0", "1"], ["2", "1", "0"]])
    func `three services whose loads ask each other in a ring get an error`(order: [String]) {
        let ring = Neighbours([Self.asking(1, as: "0"), Self.asking(2, as: "1"), Self.asking(0, as: "2")])
        let callers = (0..<3).map(ring.call)
        for gate in order { ring.open(gate) }
        expectCycle(callers, in: ring)
    }

    // MARK: In a store's operation

    @Test(arguments: ["load", "save", "remove"])
    func `a store gets an error if it asks a service whose loader asks the store's own service`(operation: String) {
        let store = AskingStore(in: operation) { _ = try await $0.ask(1) }
        let neighbours = Neighbours([{ _ in .hour("0") }, Self.asking(0, as: "1")], stores: [0: store])
        let service = neighbours[0]
        neighbours.open("1")
        if operation == "remove" {
            let change = neighbours.stage.start { await service.reset() }.value
            #expect(change?.storeFailure?.code == .storeFailed)
        } else {
            let caller = neighbours.call(0)
            #expect(operation == "load" ? caller.firstCause == .loaderWaitsForItself : caller.value?.value == "0")
        }
        #expect(!neighbours.areWaiting && neighbours.clock.now.offset == .zero)
    }

    @Test(arguments: ["load", "save", "remove"])
    func `a store that asks its own service gets an error`(operation: String) {
        let codes = Log<TokenServiceError.Code?>()
        let store = AskingStore(in: operation) { neighbours in
            do { _ = try await neighbours.ask(0) } catch { codes.append((error as? TokenServiceError)?.code) }
        }
        let neighbours = Neighbours([{ _ in .hour("0") }], stores: [0: store])
        let service = neighbours[0]
        if operation == "remove" {
            #expect(neighbours.stage.start { await service.reset() }.isDone)
        } else {
            #expect(neighbours.call(0).value?.value == "0")
        }
        #expect(codes.entries == [.loaderWaitsForItself] && !neighbours.areWaiting)
    }

    @Test(arguments: ["load", "save", "remove"])
    func `a task that outlives the store's operation that started it is an ordinary caller`(operation: String) {
        let answers = Log<String>()
        let store = AskingStore(in: operation) { neighbours in
            Task(executorPreference: neighbours.stage) {
                await neighbours.pass("leftover")
                answers.append(try await neighbours.ask(0).value)
            }
        }
        let neighbours = Neighbours([{ _ in .hour("0") }], stores: [0: store])
        let service = neighbours[0]
        if operation != "remove" { _ = neighbours.call(0) }
        _ = neighbours.stage.start { await service.reset() }
        neighbours.open("leftover")
        #expect(answers.entries.first == "0")
    }

    @Test func `nothing waits for a store operation that is late, so it closes no cycle`() {
        let store = AskingStore(in: "remove") { neighbours in
            await neighbours.pass("remove")
            _ = try await neighbours.ask(1)
        }
        let neighbours = Neighbours([{ _ in .hour("0") }, Self.asking(0, as: "1")], stores: [0: store])
        let signOut = neighbours.stage.start { [service = neighbours[0]] in await service.reset() }
        neighbours.clock.advance(by: .seconds(5))
        neighbours.stage.run()
        #expect(signOut.isDone)
        neighbours.open("remove", "1")
        #expect(neighbours.call(1).value?.value == "1")
    }
}
