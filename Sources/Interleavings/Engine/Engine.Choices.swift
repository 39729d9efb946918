extension Engine {
    /// The decisions of one execution so far, and the steps in which they were taken.
    struct Choices: Sendable {
        private(set) var chooser: Chooser
        private(set) var made: [Int] = []
        private(set) var steps = 0
        private(set) var fingerprint = Fingerprint()
        /// The kinds of order that the execution left out.
        private(set) var omissions: Omissions = []
        /// An overdue task was passed over, as only an exhaustive exploration does.
        private var isUnfair = false
        private let blackBox: BlackBox?

        init(_ chooser: Chooser, _ blackBox: BlackBox?) {
            (self.chooser, self.blackBox) = (chooser, blackBox)
        }

        /// Picks one of several tasks.
        mutating func pick(among tasks: [Int], _ offer: State.Offer) -> Int {
            let pick = append(chooser.choose(among: tasks, offer))
            if offer.isOverdue, pick > 0 { isUnfair = true }
            return pick
        }

        /// Picks a number, if there is a choice.
        mutating func value(below count: Int) -> Int {
            guard count > 1 else { return 0 }
            let pick = append(chooser.value(below: count))
            mix(pick, count)
            return pick
        }

        private mutating func append(_ choice: Int) -> Int {
            made.append(choice)
            blackBox?.append(choice)
            return choice
        }

        /// Begins a step of a task, which was one of so many that could run.
        mutating func begin(_ task: Int, among count: Int) {
            steps += 1
            blackBox?.begin(step: steps)
            mix(task, count)
        }

        /// Begins a step after the outcome.
        mutating func beginLate() { steps += 1 }

        private mutating func mix(_ value: Int, _ count: Int) {
            fingerprint.mix(value)
            fingerprint.mix(count)
        }

        mutating func mix(_ name: String) { fingerprint.mix(name) }

        mutating func omit(_ kind: Omissions) { omissions.formUnion(kind) }

        /// Whether the execution has gone on for too long; an unfair one may take as many steps again, to end fairly.
        func hasReached(_ stepLimit: Int) -> Bool { (isUnfair ? steps / 2 : steps) >= stepLimit }
    }
}
