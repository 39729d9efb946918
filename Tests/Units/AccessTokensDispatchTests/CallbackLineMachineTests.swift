import AccessTokens
import AccessTokensTesting
import Testing
import TokenServiceConcurrency

@testable import AccessTokensDispatch

@Suite struct CallbackLineMachineTests {
    private func hit(_ state: inout CallbackLine.StateMachine, limit: CallbackLine.Limit? = nil) {
        let place = state.append(CallbackLine.Call { _ in }, token: .hour("a"), publication: 1, limit: limit, since: 0)
        #expect(place != nil)
    }

    private func miss(
        _ state: inout CallbackLine.StateMachine, as urgency: Urgency = Urgency(.medium), limit: CallbackLine.Limit? = nil,
        _ handler: @escaping AccessTokenService.Handler = { _ in }
    ) {
        let place = state.append(
            CallbackLine.Call(handler: handler), generation: 0, as: urgency, limit: limit, since: state.epoch)
        #expect(place != nil)
    }

    @Test func `a call overtaken by an operation after its look looks again, whether it had found a token or not`() {
        var state = CallbackLine.StateMachine()
        let start = state.epoch
        state.append({ _, _ in }, as: Urgency(.medium))
        let hit = state.append(CallbackLine.Call { _ in }, token: .hour("a"), publication: 1, since: start)
        let miss = state.append(CallbackLine.Call { _ in }, generation: 0, as: Urgency(.medium), since: start)
        #expect(hit == nil && miss == nil && state.segments.count == 1)
    }

    @Test func `delivered calls leave the line, even if it is never empty`() {
        var state = CallbackLine.StateMachine()
        for number in 0..<100 {
            miss(&state)
            // Take its errand, so that the next miss gets its own segment; the previous one is answered.
            _ = state.takeErrands(by: Urgency(.medium))
            guard number > 0 else { continue }
            state.finish(number - 1, .answered(.failure(TokenServiceError(.reset))))
            let ready = state.beginDelivery()
            #expect(ready?.count == 1)
            _ = state.continueDelivery(CallbackLine.ReusableBuffers())
        }
        let segments = Mirror(reflecting: state).descendant("segments").map { Mirror(reflecting: $0).children.count }
        #expect(segments.map { $0 <= 2 } == true, "\(String(describing: segments)) for one that waits")
    }

    @Test func `hits in a row share a segment, whose memory is reused`() {
        var state = CallbackLine.StateMachine()
        var capacities: [Int] = []
        for _ in 0..<4 {
            for _ in 0..<10 { hit(&state) }
            var ready = state.beginDelivery() ?? []
            #expect(ready.map(\.count) == [10])
            let buffers = CallbackLine.ReusableBuffers(emptying: &ready)
            #expect(ready.isEmpty && buffers.calls.isEmpty && buffers.segments.isEmpty)
            capacities.append(buffers.calls.capacity)
            _ = state.continueDelivery(buffers)
        }
        // A segment stores its first call separately, so nine are in the buffer.
        #expect(capacities.allSatisfy { $0 >= 9 && $0 == capacities[0] }, "\(capacities)")
    }

    @Test func `a miss behind a hit starts a segment of its own, apart from the misses in front`() {
        var state = CallbackLine.StateMachine()
        miss(&state)
        hit(&state)
        miss(&state)
        miss(&state)
        #expect(state.segments.map(\.count) == [1, 1, 2])
        let errands = state.takeErrands(by: Urgency(.medium)).filter { state.takeErrand(of: $0) != nil }
        #expect(errands == [0, 2])
    }

    @Test func `hits in front of a miss may be delivered before the miss's carrier arrives`() {
        var state = CallbackLine.StateMachine()
        hit(&state)
        miss(&state)
        let errands = state.takeErrands(by: Urgency(.medium))
        #expect(state.beginDelivery()?.count == 1)
        #expect(errands.map { state.takeErrand(of: $0) != nil } == [false, true])
    }

    @Test func `a carrier is forgotten when it arrives, in any order`() {
        for arrivals in [[Urgency(.background), Urgency(.high)], [Urgency(.high), Urgency(.background)]] {
            var state = CallbackLine.StateMachine()
            for _ in 1...2 {
                for urgency in [Urgency(.background), Urgency(.high)] {
                    miss(&state, as: urgency)
                    #expect(state.beginCarrying() == urgency && state.beginCarrying() == nil)
                }
                for carrier in arrivals { _ = state.takeErrands(by: carrier) }
            }
        }
    }

    @Test func `the buffer for several calls is kept after a single call`() {
        var state = CallbackLine.StateMachine()
        for calls in [10, 1, 10] {
            for _ in 0..<calls { hit(&state) }
            var ready = state.beginDelivery() ?? []
            #expect(calls == 1 || ready[0].others.capacity > 0)
            _ = state.continueDelivery(CallbackLine.ReusableBuffers(emptying: &ready))
            #expect(state.buffers.calls.capacity >= 9)
        }
    }

    @Test func `the limits of answered calls are forgotten, even in a line that is never empty`() {
        var state = CallbackLine.StateMachine()
        // The last call in the line is always waiting.
        for number in 0..<10_000 {
            let limit = CallbackLine.Limit(.seconds(3_600 - number % 7), from: .zero)
            miss(&state, limit: limit)
            _ = state.takeErrands(by: Urgency(.medium))
            guard number > 0 else { continue }
            state.finish(number - 1, .answered(.failure(TokenServiceError(.reset))))
            _ = state.beginDelivery()
            _ = state.continueDelivery(CallbackLine.ReusableBuffers())
        }
        #expect(state.limits.count <= 64)
        #expect(state.nextAlarm() != nil)
        state.finish(9_999, .answered(.failure(TokenServiceError(.reset))))
        _ = state.beginDelivery()
        #expect(state.limits.count == 0)
    }

    @Test func `a crowd's limits pass in the order of their times, and of the calls`() {
        var state = CallbackLine.StateMachine(), random = SplitMix64(seed: 1)
        let log = Log<Int>()
        let times = (0..<1_000).map { _ in Int.random(in: 1...50, using: &random) }
        for (number, time) in times.enumerated() {
            let limit = CallbackLine.Limit(.seconds(time), from: .zero)
            miss(&state, limit: limit) { _ in log.append(number) }
        }
        var expected: [Int] = []
        for time in 1...50 {
            state.expire(at: .seconds(time))
            expected += times.indices.filter { times[$0] == time }
        }
        for segment in state.outOfTurn { segment.call() }
        #expect(log.entries == expected && state.callers(of: 0) == 0)
    }

    @Test(arguments: [(64, true), (1_000, false)])
    func `a large line's memory is released`(calls: Int, isKept: Bool) {
        var hits = [CallbackLine.Segment(.hit(.hour("a"), publication: 1), at: .beside(0))], memory: [CallbackLine.Call] = []
        for _ in 0..<calls { hits[0].append(CallbackLine.Call { _ in }, using: &memory) }
        var misses = Array(repeating: CallbackLine.Segment(.carried(), at: .beside(0)), count: calls)
        let ofHits = CallbackLine.ReusableBuffers(emptying: &hits), ofMisses = CallbackLine.ReusableBuffers(emptying: &misses)
        #expect((ofHits.calls.capacity > 0) == isKept)
        #expect((ofMisses.segments.capacity > 0) == isKept)
        #expect(hits.isEmpty && misses.isEmpty)
    }
}
