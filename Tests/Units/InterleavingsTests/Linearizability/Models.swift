import Interleavings

/// A number that callers increment and read.
struct Counter: SequentialModel {
    enum Operation { case increment, read }
    var value = 0

    mutating func apply(_ operation: Operation) -> Int {
        if operation == .increment { value += 1 }
        return value
    }
}

/// One value, written and read.
struct Register: SequentialModel {
    enum Operation { case write(Int), read }
    var value = 0

    mutating func apply(_ operation: Operation) -> Int? {
        guard case .write(let new) = operation else { return value }
        value = new
        return nil
    }
}

/// First in, first out.
struct Queue: SequentialModel {
    enum Operation { case add(Int), take }
    var items: [Int] = []

    mutating func apply(_ operation: Operation) -> Int? {
        guard case .add(let item) = operation else { return items.isEmpty ? nil : items.removeFirst() }
        items.append(item)
        return nil
    }
}

/// Last in, first out.
struct Stack: SequentialModel {
    enum Operation { case push(Int), pop }
    var items: [Int] = []

    mutating func apply(_ operation: Operation) -> Int? {
        guard case .push(let item) = operation else { return items.popLast() }
        items.append(item)
        return nil
    }
}

/// A bag that returns any item it holds, so that several states may follow a take that never returned.
struct Bag: SequentialSpecification {
    let initialState: [Int] = []

    func states(after operation: Queue.Operation, returning outcome: Int??, in items: [Int]) -> [[Int]] {
        switch (operation, outcome) {
        case (.add(let item), nil), (.add(let item), .some(nil)): [(items + [item]).sorted()]
        case (.add, _): []
        case (.take, .some(nil)): items.isEmpty ? [items] : []
        case (.take, .some(.some(let taken))): items.contains(taken) ? [items.without(taken)] : []
        case (.take, nil): items.isEmpty ? [items] : Set(items).sorted().map(items.without)
        }
    }
}

extension [Int] {
    func without(_ item: Int) -> [Int] {
        var rest = self
        if let index = rest.firstIndex(of: item) { rest.remove(at: index) }
        return rest
    }
}
