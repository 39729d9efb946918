extension Exhibit {
    /// The exhibits from 16 on.
    package static let secondHalf: [Exhibit] = [
        .sixteen, .seventeen, .eighteen, .nineteen, .twenty, .twentyOne, .twentyTwo, .twentyThree, .twentyFour, .twentyFive,
        .twentySix, .twentySeven, .twentyEight, .twentyNine,
    ]
}
