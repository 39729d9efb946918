import AccessTokens

extension CallbackLine.StateMachine {
    typealias Segment = CallbackLine.Segment
    typealias ReusableBuffers = CallbackLine.ReusableBuffers

    mutating func beginDispatch() -> Bool {
        let isDue = delivered < segments.count && segments[delivered].isReady
        guard isDue || !outOfTurn.isEmpty else { return false }
        // Choose the handler's delivery now, so that a later `queue.sync {}` waits for it.
        if isDelivering, room > 0 {
            room -= 1
            deliversAgain = true
            return false
        }
        // A delivery that another thread is about to dispatch doesn't count: it may be enqueued after that `queue.sync {}`.
        return dispatches <= 0
    }

    mutating func endDispatch() {
        dispatches += 1
    }

    mutating func beginDelivery() -> [Segment]? {
        dispatches -= 1
        guard !isDelivering else {
            deliversAgain = true
            return nil
        }
        isDelivering = true
        room = Self.room
        return takeReady()
    }

    mutating func continueDelivery(_ buffers: ReusableBuffers) -> [Segment]? {
        if !cancelled.isEmpty { cancelled = [] }
        self.buffers.segments = buffers.segments
        // A single call has used no array.
        if buffers.calls.capacity > 0 { self.buffers.calls = buffers.calls }
        guard deliversAgain else {
            isDelivering = false
            return nil
        }
        deliversAgain = false
        return takeReady()
    }

    private mutating func takeReady() -> [Segment] {
        guard !outOfTurn.isEmpty else { return takeTurns() }
        defer { outOfTurn = [] }
        return outOfTurn + takeTurns()
    }

    private mutating func takeTurns() -> [Segment] {
        // Usually all segments are ready: then nothing is copied.
        if delivered == 0, isReady {
            var ready: [Segment] = []
            swap(&ready, &buffers.segments)
            swap(&ready, &segments)
            first += ready.count
            if limits.count > 0 { limits = LimitHeap() }
            return ready
        }
        // Copy them and empty the originals: the array stays unshared, and no handler outlives its delivery.
        let ready = Array(segments[delivered...].prefix(while: \.isReady))
        for index in delivered..<(delivered + ready.count) { segments[index] = Segment(.carried(), at: .beside(0)) }
        first += ready.count
        delivered += ready.count
        // Compact when half of the array is finished: a constant cost for each segment.
        if delivered * 2 >= segments.count {
            segments.removeFirst(delivered)
            delivered = 0
        }
        return ready
    }

    // MARK: Cancellation

    /// Where a cancelled call was found; the caller releases it outside the lock.
    enum Cancellation: Sendable {
        /// - Parameter deserted: The waiter that stands for its segment in the lobby, if no other call waits with it.
        case inLine(CallbackLine.Call, deserted: TokenService.CallbackPlace?)
        case outOfTurn(Segment)
        /// It was called or cancelled before, or a delivery has it.
        case gone
    }

    /// Removes a cancelled call, wherever it is.
    mutating func cancel(_ place: CallbackLine.Position) -> Cancellation {
        if place.segment >= first, let call = self[place.segment].takeCall(at: place.call) {
            return .inLine(call, deserted: desertedWaiter(of: place.segment))
        }
        if let index = outOfTurn.firstIndex(where: { $0.place == place }) { return .outOfTurn(outOfTurn.remove(at: index)) }
        if isDelivering { cancelled.insert(place) }
        return .gone
    }

    /// Notes the waiter that stands for a segment's calls in the lobby; returns it if they have all left meanwhile.
    mutating func carried(_ segment: Int, waiter: TokenService.CallbackPlace) -> TokenService.CallbackPlace? {
        guard segment >= first, case .carried = self[segment].stage else { return nil }
        self[segment].stage = .carried(waiter: waiter)
        return desertedWaiter(of: segment)
    }

    func desertedWaiter(of segment: Int) -> TokenService.CallbackPlace? {
        guard self[segment].waiting == 0, case .carried(let waiter) = self[segment].stage else { return nil }
        return waiter
    }
}
