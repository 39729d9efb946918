import AccessTokens
import Testing

@testable import AccessTokensDispatch

@Suite struct CallbackLineStateTests {
    @Test func `what is delivered leaves the line, also from one that is never empty`() {
        var state = CallbackLine.State()
        for number in 0..<100 {
            state.append(CallbackLine.Call { _ in }, generation: 0, priority: .medium)
            // Its errand has left, so that the next miss is a segment of its own; the one before it is answered.
            _ = state.takeErrands()
            guard number > 0 else { continue }
            state.answer(number - 1, with: .failure(TokenServiceError(.reset)))
            let ready = state.beginDelivery()
            #expect(ready?.count == 1)
            _ = state.continueDelivery(CallbackLine.Spare())
        }
        let segments = Mirror(reflecting: state).descendant("segments").map { Mirror(reflecting: $0).children.count }
        #expect(segments.map { $0 <= 2 } == true, "\(String(describing: segments)) for one that waits")
    }
}
