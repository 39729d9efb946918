import Foundation
import TestBudgets
import Testing
import TokenServiceConcurrency
import AccessTokensHTTP

@testable import DataLoading

@Suite(.inRealTime)
struct ConnectionLineTests {
    let line = ConnectionLine(limit: 2)
    /// Shared with the closures that wait in line.
    final class Places: Sendable {
        let taken = Lock<[Int: ConnectionLine.Place]>([:])
    }

    let places = Places()
    let here: Origin
    let elsewhere: Origin

    init() throws {
        here = try #require(URL(string: "https://here.example").flatMap(Origin.init))
        elsewhere = try #require(URL(string: "https://elsewhere.example").flatMap(Origin.init))
    }

    /// Enters the line under a name, and returns the number for leaving it.
    @discardableResult func enter(_ name: Int, for origin: Origin) -> Int {
        line.enter(for: origin) { [places] place in places.taken.withLock { $0[name] = place } }
    }

    /// Releases a place, outside the lock, since that calls the next in line.
    func end(_ name: Int) {
        let place = places.taken.withLock { $0.removeValue(forKey: name) }
        #expect(place != nil)
    }

    var present: [Int] { places.taken.withLock { $0.keys.sorted() } }

    @Test func `at most as many messages as the limit have a connection, and the others follow in order of arrival`() {
        for name in 1...4 { enter(name, for: here) }
        #expect(present == [1, 2])
        end(2)
        #expect(present == [1, 3])
        end(1)
        #expect(present == [3, 4])
        end(3)
        end(4)
        for name in 5...7 { enter(name, for: here) }
        #expect(present == [5, 6], "an empty line is like a new one")
    }

    @Test func `messages to one origin don't wait for those to another`() {
        for name in 1...3 { enter(name, for: here) }
        enter(4, for: elsewhere)
        #expect(present == [1, 2, 4])
        end(4)
        #expect(present == [1, 2])
    }

    @Test func `a message that leaves the line doesn't come back, and the others keep their order`() {
        let numbers = (1...4).map { enter($0, for: here) }
        line.leave(numbers[2], for: here)
        line.leave(numbers[2], for: here)
        end(1)
        #expect(present == [2, 4])
        line.leave(numbers[1], for: here)
        #expect(present == [2, 4], "a place that is taken is kept")
    }

    @Test(arguments: [0, -3]) func `a limit below one counts as one connection at a time`(limit: Int) {
        let line = ConnectionLine(limit: limit)
        _ = line.enter(for: here) { [places] place in places.taken.withLock { $0[1] = place } }
        #expect(present == [1])
    }
}
