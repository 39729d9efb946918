import Testing
import TokenServiceConcurrency

@Suite struct `The seeded generator` {
    @Test func `produces the sequence that its authors published for seed 1234567`() {
        var random = SplitMix64(seed: 1_234_567)
        let numbers = (1...5).map { _ in random.next() }
        #expect(
            numbers == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423, 4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ])
    }

    @Test func `stays below the bound and reaches every number below it`() {
        var random = SplitMix64(seed: 1)
        #expect(Set((1...1_000).map { _ in random.below(7) }) == Set(0..<7))
    }
}
