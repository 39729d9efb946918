import AccessTokensTesting
import TestBudgets
import Testing
import TokenServiceConcurrency

@testable import AccessTokens

@Suite struct LimitHeapTests {
    @Test(arguments: 1 ... .everyday(3, thorough: 30))
    func `limits come out in sorted order, whatever the order of additions and removals`(seed: UInt64) {
        var random = SplitMix64(seed: seed), heap = LimitHeap<Int>(), list: [(time: Duration, owner: Int)] = []
        for step in 1...1_000 {
            let time = Duration.seconds(Int.random(in: 0..<50, using: &random))
            if step.isMultiple(of: 50) {
                let left = Int.random(in: 2...9, using: &random)
                heap.purge { $0.isMultiple(of: left) }
                list.removeAll { $0.owner.isMultiple(of: left) }
            }
            if Int.random(in: 0..<3, using: &random) > 0 {
                heap.insert(step, at: time)
                list.append((time, step))
            } else {
                let owner = heap.removeEarliest(until: time)
                let earliest = list.map(\.time).min()
                guard let earliest, earliest <= time else {
                    #expect(owner == nil)
                    continue
                }
                // Remove any of equal entries: the order in which two callers leave at the same moment isn't guaranteed.
                guard let index = list.firstIndex(where: { $0.owner == owner }) else {
                    Issue.record("\(owner as Any) is not in the list")
                    return
                }
                #expect(list.remove(at: index).time == earliest)
            }
            #expect(heap.earliest == list.map(\.time).min())
        }
        var rest: [Int] = []
        while let owner = heap.removeEarliest(until: .seconds(50)) { rest.append(owner) }
        #expect(rest.sorted() == list.map(\.owner).sorted() && heap.earliest == nil)
    }

    @Test func `no limit comes out before its time`() {
        var heap = LimitHeap<String>()
        let none = heap.removeEarliest(until: .seconds(1_000_000))
        heap.insert("a", at: .seconds(2))
        let early = heap.removeEarliest(until: .seconds(2) - .nanoseconds(1)), due = heap.removeEarliest(until: .seconds(2))
        #expect(none == nil && early == nil && due == "a" && heap.earliest == nil)
    }
}
