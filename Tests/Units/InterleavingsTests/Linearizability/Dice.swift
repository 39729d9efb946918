import TokenServiceConcurrency

typealias Dice = SplitMix64

extension Dice {
    mutating func roll(_ sides: Int) -> Int { Int.random(in: 0..<sides, using: &self) }
}

extension Counter {
    static func random(_ dice: inout Dice) -> Operation { dice.roll(2) == 0 ? .read : .increment }
}

extension Register {
    static func random(_ dice: inout Dice) -> Operation { dice.roll(2) == 0 ? .read : .write(dice.roll(3)) }
}

extension Queue {
    static func random(_ dice: inout Dice) -> Operation { dice.roll(2) == 0 ? .take : .add(dice.roll(3)) }
}

extension Stack {
    static func random(_ dice: inout Dice) -> Operation { dice.roll(2) == 0 ? .pop : .push(dice.roll(3)) }
}
