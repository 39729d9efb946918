extension Exhibit {
    /// Museum 1 to 15.
    package static let firstHalf = [
        one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen,
    ]
}
