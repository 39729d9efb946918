/// Numbers that a seed repeats.
struct Dice: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    /// Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014 (SplitMix64).
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

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
