/// Lets in one task at a time.
actor Turnstile {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        guard isTaken else { return isTaken = true }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}

/// The turnstile and its callers, step by step.
struct TurnstileBoard {
    /// A resumed task returns to the actor through the pool, where the runtime resumes its continuation.
    enum Place { case start, entering, waiting, called, returning, inside, leaving, end, done }

    private var places: [Place]
    private var isTaken = false
    private var waiting: [Int] = []

    init(callers: Int) {
        places = Array(repeating: .start, count: callers)
    }

    /// The number of possible orders to the end.
    var games: Int {
        let movable = places.indices.filter { places[$0] != .waiting && places[$0] != .done }
        guard !movable.isEmpty else { return 1 }
        return movable.reduce(0) { $0 + after($1).games }
    }

    private func after(_ caller: Int) -> Self {
        var board = self
        board.move(caller)
        return board
    }

    private mutating func move(_ caller: Int) {
        switch places[caller] {
        case .start: places[caller] = .entering
        case .entering where isTaken:
            waiting.append(caller)
            places[caller] = .waiting
        case .entering:
            isTaken = true
            places[caller] = .inside
        case .called: places[caller] = .returning
        case .returning: places[caller] = .inside
        case .inside: places[caller] = .leaving
        case .leaving:
            if waiting.isEmpty { isTaken = false } else { places[waiting.removeFirst()] = .called }
            places[caller] = .end
        case .end: places[caller] = .done
        case .waiting, .done: break
        }
    }
}
