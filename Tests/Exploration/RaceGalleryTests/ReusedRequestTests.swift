import RaceGallery
import AccessTokensTesting
import Testing

@Suite struct `A reused request` {
    let stage = Stage()
    let server = ScriptedServer()
    let request = ReusedRequest(path: "movies")

    func perform() -> Stage.Player<String?> {
        stage.start { [server, request] in try await request.perform(with: server.fetch) }
    }

    func answer(_ index: Int = 0, with text: String) {
        server.answer(index, with: text)
        stage.run()
    }

    @Test func `a reused request works for one performance after the other`() {
        #expect(request.state == .pending)
        for text in ["a", "b"] {
            let performance = perform()
            #expect(request.state == .ongoing)
            answer(with: text)
            #expect(performance.value == text && request.state == .completed(text))
        }
    }

    @Test
    func `flaw of a reused request: its second performance gets the first one's answer while it still runs`() {
        let (_, second) = (perform(), perform())
        answer(with: "first")
        #expect(request.state == .completed("first") && !second.isDone)
        answer(with: "second")
        #expect(second.value == "first")
    }

    @Test func `flaw of a reused request: both performances get the answer that comes first`() {
        let (first, second) = (perform(), perform())
        answer(1, with: "second")
        answer(with: "first")
        #expect(first.value == "second" && second.value == "second")
    }

    @Test func `flaw of a reused request: cancelling it for one owner cancels it for the other`() {
        let other = perform()
        request.cancel()
        answer(with: "theirs")
        #expect(other.isDone && other.value == .some(nil))
    }

    @Test func `flaw of a reused request: performing it again undoes a cancellation`() {
        let cancelled = perform()
        request.cancel()
        _ = perform()
        answer(with: "unwanted")
        #expect(cancelled.value == "unwanted")
    }
}
