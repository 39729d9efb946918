import Testing
import TokenServiceConcurrency

@testable import AccessTokens

@Suite struct WaiterQueueTests {
    private func order(_ queue: WaiterQueue<Int>) -> [Int] {
        var order: [Int] = []
        queue.forEach { order.append($0) }
        return order
    }

    @Test(arguments: 0..<5)
    func `a waiter that leaves is gone, and the others keep their order`(index: Int) {
        var queue = WaiterQueue<Int>()
        let ids = (0..<5).map { queue.append($0) }
        let first = queue.remove(ids[index]), second = queue.remove(ids[index])
        #expect(first == index && second == nil)
        #expect(order(queue) == [0, 1, 2, 3, 4].filter { $0 != index })
        _ = queue.append(5)
        #expect(order(queue) == [0, 1, 2, 3, 4].filter { $0 != index } + [5])
    }

    @Test func `an identifier from before the queue was emptied names no waiter in it`() {
        var queue = WaiterQueue<Int>()
        let old = queue.append(1)
        _ = queue.takeAll()
        let new = queue.append(2)
        let isFilled = queue.fill(old, with: 3), stranger = queue.remove(old), waiter = queue.remove(new)
        #expect(!isFilled && stranger == nil && waiter == 2)
    }

    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
    func `the queue behaves like an array from which waiters are removed`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var queue = WaiterQueue<Int>(), model: [(id: WaiterQueue<Int>.ID, waiter: Int)] = []
        for waiter in 0..<2_000 {
            if Bool.random(using: &random) || model.isEmpty {
                model.append((queue.append(waiter), waiter))
            } else {
                let leaver = model.remove(at: Int.random(in: 0..<model.count, using: &random))
                let removed = queue.remove(leaver.id)
                #expect(removed == leaver.waiter, "seed \(seed)")
            }
            if waiter % 500 == 499 {
                #expect(order(queue) == model.map(\.waiter), "seed \(seed)")
            }
            #expect(queue.count == model.count)
        }
    }

    @Test func `a place is kept in the order of arrival, even if its waiter is added later`() {
        var queue = WaiterQueue<Int>()
        let first = queue.append(), second = queue.append(2)
        #expect(order(queue) == [2])
        let isFilled = queue.fill(first, with: 1)
        #expect(isFilled && order(queue) == [1, 2])
        _ = queue.remove(first)
        let third = queue.append(3)
        #expect(!queue.holds(first) && order(queue) == [2, 3], "and its place isn't taken while others wait")
        #expect(second < third)
    }

    @Test func `freed places are reused, so the queue is never larger than the most that waited at once`() {
        var queue = WaiterQueue<Int>()
        for waiter in 0..<100 {
            let ids = (0..<3).map { queue.append(waiter + $0) }
            for id in ids { _ = queue.remove(id) }
        }
        let slots = Mirror(reflecting: queue).descendant("slots")
        #expect(slots.map { Mirror(reflecting: $0).children.count } == 2, "the first has none")
    }
}
